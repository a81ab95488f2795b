package postgres

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"lessor/internal/scheduler"
)

// TestCrashGivesNoPlaceTwice: a node reserves places and commits nothing, and the database crashes, which takes back
// the number of the block. The node must forget the block, because it may be given the same one again.
func TestCrashGivesNoPlaceTwice(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, Config{URL: url})
	if err := s.Update(t.Context(), func(tx scheduler.Tx) error {
		_, err := tx.Seqs(t.Context(), 1)
		return errors.Join(err, errRefused)
	}); !errors.Is(err, errRefused) {
		t.Fatal(err)
	}
	s.seqs.until = time.Now().Add(time.Hour) // the machine may stall
	readAll(t, url, fmt.Sprintf("select setval('place', %d, false)", s.seqs.limit-seqBlock), nil)
	endSessions(t, url)
	given := map[int64]bool{}
	for range 2 {
		moves, err := cohort(t, s, cohortMin, func([]scheduler.Move) {})
		for i := range moves {
			if seq := moves[i].Turn.Seq; given[seq] {
				t.Errorf("place %d was given twice", seq)
			} else {
				given[seq] = true
			}
		}
		if err != nil {
			t.Error(err)
		}
		s.seqs.until = time.Time{}
	}
}

// endSessions ends all sessions of the stores on a database, as a crash of it does.
func endSessions(t *testing.T, url string) {
	t.Helper()
	const ours = " from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()" +
		" and application_name = 'lessor'"
	readAll(t, url, "select pg_terminate_backend(pid)"+ours, nil)
	await(t, "the sessions have ended", func() bool {
		left := 0
		readAll(t, url, "select 1"+ours, func([][]byte) { left++ })
		return left == 0
	})
}
