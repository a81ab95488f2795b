package postgres

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"lessor/internal/pgtest"
)

// TestPoolerThatMixesUpStatementsIsNamed opens a store behind a pgbouncer that does not support prepared statements. A
// second connection then meets the statements of the first, and the error must name the remedy.
func TestPoolerThatMixesUpStatementsIsNamed(t *testing.T) {
	ctx := t.Context()
	server, err := pgtest.Start(ctx, pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	pooler, err := pgtest.StartPooler(ctx, server, pgtest.TransactionMode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pooler.Stop() })
	url := pooler.URL("postgres")
	if keepsStatementsApart(t) {
		openAt(t, Config{URL: url})
		return
	}
	const advice = "use pgbouncer 1.21 or newer"
	if _, err := Open(ctx, Config{URL: url}); err == nil || !strings.Contains(err.Error(), advice) {
		t.Errorf("a start: %v, want the advice: %s", err, advice)
	}
	s := openAt(t, Config{URL: url, Unprepared: true})
	s.dialer.Unprepared = false // as if the pooler was replaced under the node
	if found := s.Check(ctx); len(found) != 1 || found[0].OK || !strings.Contains(found[0].Detail, advice) {
		t.Errorf("the check found %+v, want the advice: %s", found, advice)
	}
}

// keepsStatementsApart reports whether the pgbouncer of this machine is 1.24 or newer, which does so by default.
func keepsStatementsApart(t *testing.T) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "PATH=$PATH:/usr/sbin pgbouncer --version").Output()
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`PgBouncer (1\.(2[4-9]|[3-9]\d)|[2-9])`).Match(out)
}
