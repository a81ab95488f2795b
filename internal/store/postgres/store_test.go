package postgres

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"lessor/internal/pgtest"
	"lessor/internal/scheduler"
	"lessor/internal/store/storetest"
)

// pool is the server of these tests.
var pool = &pgtest.Pool{Migrate: func(ctx context.Context, url string) error {
	s, err := Open(ctx, Config{URL: url})
	if err != nil {
		return err
	}
	return s.Close()
}}

func TestMain(m *testing.M) { os.Exit(pool.Main(m)) }

// patient returns settings with long time-outs, for tests that work long inside a transaction on a busy machine.
func patient(url string) Config {
	return Config{
		URL: url, IdleTimeout: 20 * time.Second, GateTimeout: 20 * time.Second, LockTimeout: 30 * time.Second,
		StatementTimeout: time.Minute,
	}
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() scheduler.Store {
		url := pool.Database(t)
		return func() scheduler.Store { return openAt(t, patient(url)) }
	})
}

func TestShared(t *testing.T) {
	storetest.RunShared(t, func(t *testing.T) func() scheduler.Store {
		url := pool.Database(t)
		return func() scheduler.Store { return openAt(t, patient(url)) }
	})
}

// TestLockedTableIsOutOfReach: an operator locks a table, as for maintenance. Views fail as unreachable.
func TestLockedTableIsOutOfReach(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, Config{URL: url, LockTimeout: 50 * time.Millisecond})
	for _, table := range []string{"lease", "serving"} {
		h := newHolder(t, url, "begin; lock table "+table)
		h.take()
		err := s.View(t.Context(), func(v scheduler.View) error {
			_, err := v.WorkspaceLeases(t.Context(), "w")
			return err
		})
		if !errors.Is(err, scheduler.ErrUnreachable) || errors.Is(err, scheduler.ErrAgain) {
			t.Errorf("a view while %s is locked: %v, want %v", table, err, scheduler.ErrUnreachable)
		}
		h.give()
	}
}

// openAt opens a store that is closed when the test ends.
func openAt(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}
