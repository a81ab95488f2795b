package sqlite

import (
	"testing"

	lib "modernc.org/sqlite/lib"

	"lessor/internal/store/storetest"
)

// TestStatementsPerCall: the number of statements does not grow with a batch, except by rows that are inserted in
// groups of bulkRows. Begin and commit count.
func TestStatementsPerCall(t *testing.T) {
	s := openAt(t, Config{})
	storetest.Statements(t, s, func() int { return statementsRun(t, s) }, map[string]int{
		"submit":          4,
		"submit 100":      22,
		"request":         4,
		"first heartbeat": 3,
		"heartbeat":       3,
		"100 heartbeats":  12,
		"complete":        4,
		"turn":            6,
		"tick by hand":    10,
	})
}

// statementsRun returns how many statements the writer has run, as SQLite counts them.
func statementsRun(t *testing.T, s *Store) (n int) {
	t.Helper()
	if err := s.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.leave()
	for _, stmt := range statements(s.writer.conn) {
		n += int(status(stmt, lib.SQLITE_STMTSTATUS_RUN))
	}
	return n
}
