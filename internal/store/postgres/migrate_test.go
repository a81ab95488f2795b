package postgres

import (
	"strings"
	"sync"
	"testing"

	"lessor/internal/scheduler"
)

// TestMigrateAtOnce starts five nodes at once on an empty database.
func TestMigrateAtOnce(t *testing.T) {
	url := pool.Bare(t)
	const nodes = 5
	stores := make([]*Store, nodes)
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			s, err := Open(t.Context(), Config{URL: url})
			if err != nil {
				t.Errorf("node %d: %v", i, err)
				return
			}
			stores[i] = s
		})
	}
	wg.Wait()
	streams := map[int64]bool{}
	for _, s := range stores {
		if s == nil {
			continue
		}
		if err := write(t.Context(), s, "x", nil); err != nil {
			t.Error(err)
		}
		streams[s.stream.id.Load()] = true
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(streams) != nodes && !t.Failed() {
		t.Errorf("%d nodes have %d streams", nodes, len(streams))
	}
	applied := 0
	readAll(t, url, "select version_id from goose_db_version where version_id > 0", func([][]byte) { applied++ })
	if knows, err := knownVersion(); err != nil || int64(applied) != knows {
		t.Errorf("%d migrations were applied, want %d (%v)", applied, knows, err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	url := pool.Database(t)
	readAll(t, url, "insert into goose_db_version (version_id, is_applied) values (999, true)", nil)
	_, err := Open(t.Context(), Config{URL: url})
	if err == nil || !strings.Contains(err.Error(), "version 999") {
		t.Fatalf("a schema of version 999: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, url := range map[string]string{
		"an address that is none": "postgres://%zz", "nobody there": "postgres:///x?host=/nowhere&connect_timeout=1",
	} {
		s, err := Open(t.Context(), Config{URL: url})
		if err == nil {
			_ = s.Close()
			t.Errorf("%s: opened", name)
		}
	}
	url := pool.Database(t)
	readAll(t, url, "do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$", nil)
	if _, err := Open(t.Context(), Config{URL: url}); err == nil {
		t.Error("a server that takes no writes was opened")
	}
}

// TestUnprepared runs a store as behind a pooler that knows no prepared statements.
func TestUnprepared(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t), Unprepared: true})
	exercise(t, s)
	ids := hold(t, s, 20)
	if err := s.Update(t.Context(), func(tx scheduler.Tx) error {
		held, err := tx.Leases(t.Context(), ids)
		if len(held) != len(ids) {
			t.Errorf("%d leases of %d", len(held), len(ids))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Serve(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.writers[0].prepared) != 0 {
		t.Errorf("%d statements were prepared", len(s.writers[0].prepared))
	}
}
