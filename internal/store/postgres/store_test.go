package postgres

import (
	"context"
	"os"
	"testing"

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

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() scheduler.Store {
		url := pool.Database(t)
		return func() scheduler.Store { return openAt(t, Config{URL: url}) }
	})
}

func TestShared(t *testing.T) {
	storetest.RunShared(t, func(t *testing.T) func() scheduler.Store {
		url := pool.Database(t)
		return func() scheduler.Store { return openAt(t, Config{URL: url}) }
	})
}

// openAt opens a store that is closed with the test.
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
