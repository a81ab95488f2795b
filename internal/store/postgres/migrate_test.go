package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store"
)

// TestNodesMigrateTogetherOnce starts five nodes at once on an empty database.
func TestNodesMigrateTogetherOnce(t *testing.T) {
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
		t.Errorf("%d nodes have %d streams, want one each", nodes, len(streams))
	}
	applied := 0
	readAll(t, url, "select version_id from goose_db_version where version_id > 0", func([][]byte) { applied++ })
	if files, err := fs.Glob(migrations, "migrations/*.sql"); err != nil || applied != len(files) {
		t.Errorf("%d migrations were applied, want %d (%v)", applied, len(files), err)
	}
}

// TestTenantKeysMigrationKeepsTicksAndAlerts: ticks and alerts from before the migration are there, and another
// tenant may have ones of the same names.
func TestTenantKeysMigrationKeepsTicksAndAlerts(t *testing.T) {
	url := pool.Bare(t)
	migrateTo(t, url, 11)
	readAll(t, url, "insert into tick"+
		" values ('nightly', 10, '"+lessor.TenantID{}.String()+"', 'skipped', 'why', null, 1, 2, 3)", nil)
	readAll(t, url, "insert into alert"+
		" values ('00000000-0000-0000-0000-000000000001', 'stale', 'nightly',"+
		" '"+lessor.TenantID{}.String()+"', 'm', 5, 0)", nil)
	s := openAt(t, Config{URL: url})
	tick := rules.TickRow{
		Definition: "nightly", At: 10, Outcome: lessor.TickSkipped, Reason: "why", From: 1, To: 2,
		Count: 3,
	}
	alert := lessor.Alert{
		ID: lessor.AlertID{UUID: lessor.UUID{15: 1}}, Kind: lessor.AlertStale, Subject: "nightly",
		Message: "m", RaisedAt: 5, Count: 1,
	}
	err := s.Update(t.Context(), func(tx scheduler.Tx) error {
		theirs, their := tick, alert
		theirs.Tenant.UUID[0], their.TenantID.UUID[0], their.ID.UUID[0] = 7, 7, 7
		return errors.Join(tx.SaveTicks(t.Context(), []rules.TickRow{theirs}),
			tx.SaveAlerts(t.Context(), []lessor.Alert{their}))
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.View(t.Context(), func(v scheduler.View) error {
		got, err := v.TickList(t.Context(), scheduler.TickQuery{Definition: "nightly", Limit: 10})
		if d := cmp.Diff([]rules.TickRow{tick}, got); d != "" || err != nil {
			t.Errorf("ticks, %v (-want +got):\n%s", err, d)
		}
		open, err := v.OpenAlert(t.Context(), lessor.AlertStale, "nightly", lessor.TenantID{})
		if d := cmp.Diff(&alert, open); d != "" {
			t.Errorf("alert (-want +got):\n%s", d)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNewerSchemaIsRefusedUnlessItAllowsUs: a node of the release before may start again during an upgrade.
func TestNewerSchemaIsRefusedUnlessItAllowsUs(t *testing.T) {
	url := pool.Database(t)
	readAll(t, url, "insert into goose_db_version (version_id, is_applied) values (999, true)", nil)
	_, err := Open(t.Context(), Config{URL: url})
	if err == nil || !strings.Contains(err.Error(), "version 999") {
		t.Fatalf("a schema of version 999: %v, want an error that names the version", err)
	}
	knows, err := store.NewestMigration(migrations)
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, url, fmt.Sprintf("update setting set value = '999 %d' where name = 'schema'", knows), nil)
	exercise(t, openAt(t, Config{URL: url}))
}

func TestUnusableServersAreRefused(t *testing.T) {
	for name, url := range map[string]string{
		"a malformed URL": "postgres://%zz", "no server": "postgres:///x?host=/nowhere&connect_timeout=1",
	} {
		s, err := Open(t.Context(), Config{URL: url})
		if err == nil {
			_ = s.Close()
			t.Errorf("%s: the store was opened, want an error", name)
		}
	}
	url := pool.Database(t)
	readAll(t, url, "do $$ begin execute "+
		"format('alter database %I set default_transaction_read_only = on', current_database()); end $$", nil)
	if _, err := Open(t.Context(), Config{URL: url}); err == nil {
		t.Error("a read-only database was opened, want an error")
	}
}

// TestStoreWorksWithoutPreparedStatements runs a store with the setting for poolers that do not support prepared
// statements.
func TestStoreWorksWithoutPreparedStatements(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t), Unprepared: true})
	exercise(t, s)
	ids := leaseJobs(t, s, 20)
	if err := s.Update(t.Context(), func(tx scheduler.Tx) error {
		held, err := tx.Leases(t.Context(), ids)
		if len(held) != len(ids) {
			t.Errorf("%d leases were found, want %d", len(held), len(ids))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Serve(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if len(s.writers[0].Prepared()) != 0 {
		t.Errorf("%d statements were prepared, want none", len(s.writers[0].Prepared()))
	}
}
