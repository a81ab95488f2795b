package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store"
	"lessor/internal/store/storetest"
)

func TestStore(t *testing.T) { runStoretest(t, func(*Store) {}) }

// runStoretest runs storetest on stores that edit has changed.
func runStoretest(t *testing.T, edit func(*Store)) {
	t.Helper()
	storetest.Run(t, func(t *testing.T) func() scheduler.Store {
		path := filepath.Join(t.TempDir(), "lessor.db")
		return func() scheduler.Store {
			s := openAt(t, Config{Path: path})
			edit(s)
			return s
		}
	})
}

// openAt opens a store that does not wait for the disk, unless cfg says otherwise.
func openAt(t testing.TB, cfg Config) *Store {
	t.Helper()
	if cfg.Synchronous == "" {
		cfg.Synchronous = "OFF"
	}
	if cfg.Path == "" {
		cfg.Path = filepath.Join(t.TempDir(), "lessor.db")
	}
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

// idsMade counts the ids that uuid has returned.
var idsMade atomic.Uint64

// uuid returns ids that rise like those of version 7.
func uuid() (u lessor.UUID) {
	binary.BigEndian.PutUint64(u[:], 0x0199_0000_0000_7000)
	binary.BigEndian.PutUint64(u[8:], 0x8000_0000_0000_0000+idsMade.Add(1))
	return u
}

// drafts returns n jobs that are not stored yet.
func drafts(n int, edits ...func(*rules.Spec)) []*rules.Spec {
	specs := make([]*rules.Spec, n)
	for i := range specs {
		specs[i] = &rules.Spec{
			ID:      lessor.JobID{UUID: uuid()},
			Lane:    rules.Lane{Class: "default", Priority: lessor.Normal, Type: "mail", Units: 1},
			Payload: []byte(`{"order":"0192f0aa-1111-7000-8000-000000000001","n":12345678}`), MaxAttempts: 5,
			TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Actor: "local", CreatedAt: 1_700_000_000_000,
		}
		for _, edit := range edits {
			edit(specs[i])
		}
	}
	return specs
}

// The functions submit, grant, beat and finish act on many jobs at once, as the scheduler does.

func submit(ctx context.Context, tx scheduler.Tx, specs []*rules.Spec) error {
	lanes := make([]rules.Lane, len(specs))
	for i, s := range specs {
		lanes[i] = s.Lane
	}
	ids, err := tx.Lanes(ctx, lanes)
	if err != nil {
		return err
	}
	first, err := tx.Seqs(ctx, len(specs))
	if err != nil {
		return err
	}
	moves := make([]scheduler.Move, len(specs))
	for i, s := range specs {
		s.LaneID, s.Seq = ids[i], first+int64(i)
		moves[i] = scheduler.Move{To: rules.InQueue, Turn: rules.Turn{
			Job: s.ID, Lane: s.LaneID, Seq: s.Seq, MaxAttempts: s.MaxAttempts, Steps: 1, QueuedAt: tx.Now(),
		}}
	}
	if err := tx.Insert(ctx, specs); err != nil {
		return err
	}
	return tx.Move(ctx, moves)
}

func grant(ctx context.Context, tx scheduler.Tx, specs []*rules.Spec) ([]*rules.Held, error) {
	moves, held := make([]scheduler.Move, len(specs)), make([]*rules.Held, len(specs))
	for i, s := range specs {
		t := rules.Turn{Job: s.ID, Lane: s.LaneID, Seq: s.Seq, MaxAttempts: s.MaxAttempts, Steps: 1, QueuedAt: tx.Now()}
		held[i] = rules.Grant(lessor.LeaseID{UUID: uuid()}, t, s, "worker-0001", time.Minute, tx.Now())
		moves[i] = scheduler.Move{From: rules.InQueue, To: rules.Leased, Turn: t, Held: held[i]}
	}
	return held, tx.Move(ctx, moves)
}

func beat(ctx context.Context, tx scheduler.Tx, ids []lessor.LeaseID) error {
	leases, err := tx.Leases(ctx, ids)
	if err != nil {
		return err
	}
	held := make([]*rules.Held, 0, len(ids))
	for _, id := range ids {
		if err := rules.Beat(leases[id], rules.Hand{Holder: leases[id].Holder()}, 0, tx.Now(),
			tx.Serving()); err != nil {
			return err
		}
		held = append(held, leases[id])
	}
	return tx.SaveLeases(ctx, held)
}

func finish(ctx context.Context, tx scheduler.Tx, ids []lessor.LeaseID, e rules.End) error {
	leases, err := tx.Leases(ctx, ids)
	if err != nil {
		return err
	}
	moves := make([]scheduler.Move, len(ids))
	for i, id := range ids {
		n, err := rules.Conclude(leases[id], e,
			rules.Retries{BackoffFirst: time.Second, BackoffMax: time.Minute, MaxInterruptions: 20}, tx.Now(), 0.5)
		if err != nil {
			return err
		}
		moves[i] = scheduler.Move{
			From: rules.Leased, To: n.Place, Turn: n.Turn, Held: leases[id], Wait: n.Wait, Attempt: n.Attempt,
			Done: n.Done,
		}
	}
	return tx.Move(ctx, moves)
}

var completed = rules.End{
	Outcome: rules.OutcomeCompleted, Said: rules.SaidCompleted, Reason: "completed", Actor: "worker-0001",
}

func leaseIDs(held []*rules.Held) []lessor.LeaseID {
	ids := make([]lessor.LeaseID, len(held))
	for i, h := range held {
		ids[i] = h.ID
	}
	return ids
}

func update(t testing.TB, s *Store, fn func(scheduler.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// leased stores n jobs and leases them.
func leased(t testing.TB, s *Store, n int) (held []*rules.Held) {
	t.Helper()
	specs := drafts(n)
	update(t, s, func(tx scheduler.Tx) error { return submit(t.Context(), tx, specs) })
	update(t, s, func(tx scheduler.Tx) (err error) {
		held, err = grant(t.Context(), tx, specs)
		return err
	})
	return held
}

func TestSecondOwnerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	s := openAt(t, Config{Path: path})
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} { // a symbolic link leads to the same file
		other, err := Open(t.Context(), Config{Path: name})
		if err == nil {
			_ = other.Close()
			t.Fatalf("%s was opened a second time, want an error", name)
		}
		if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, path+".lock") {
			t.Errorf("got the error %q, want one line that names the lock file", text)
		}
	}
	update(t, s, func(tx scheduler.Tx) error { return tx.SaveSetting(t.Context(), "a", []byte("b")) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openAt(t, Config{Path: path}) // Close has released the lock
}

func TestNewerSchemaIsRefusedUnlessItAllowsUs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	if err := openAt(t, Config{Path: path}).Close(); err != nil {
		t.Fatal(err)
	}
	exec := func(text string) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Exec(text)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	exec("insert into goose_db_version (version_id, is_applied) values (999, 1)")
	_, err := Open(t.Context(), Config{Path: path})
	if err == nil || !strings.Contains(err.Error(), "version 999") {
		t.Errorf("opening a newer schema: %v, want an error that names version 999", err)
	}
	if _, err := Verify(t.Context(), path); err == nil || !strings.Contains(err.Error(), "version 999") {
		t.Errorf("verifying a newer schema: %v, want an error that names version 999", err)
	}
	knows, err := store.NewestMigration(migrations)
	if err != nil {
		t.Fatal(err)
	}
	exec(fmt.Sprintf("replace into setting values ('schema', cast('999 %d' as blob))", knows))
	if err := openAt(t, Config{Path: path}).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), path); err != nil {
		t.Errorf("verifying a newer schema that allows this program: %v", err)
	}
}

// TestNoWALIsRefused uses a file system layer of SQLite that has no shared memory, as network file systems have none.
func TestNoWALIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	conn, err := sqlite.OpenConn(fileURI(path, "vfs", "unix-dotfile"), sqlite.OpenReadWrite, sqlite.OpenCreate,
		sqlite.OpenURI)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteTransient(conn, "create table x (y)", nil); err != nil {
		t.Fatal(err)
	}
	if err := setWAL(conn); err == nil || !strings.Contains(err.Error(), "network file system") {
		t.Errorf("got %v, want an error about a network file system", err)
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk.db")
	if err := os.WriteFile(junk, []byte(strings.Repeat("this is no database ", 50)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]Config{
		"no folder":       {Path: filepath.Join(dir, "none", "lessor.db")},
		"a folder":        {Path: dir},
		"no database":     {Path: junk},
		"bad synchronous": {Path: filepath.Join(dir, "lessor.db"), Synchronous: "sometimes"},
	} {
		if s, err := Open(t.Context(), cfg); err == nil {
			_ = s.Close()
			t.Errorf("%s: the store was opened, want an error", name)
		}
	}
	if os.Getuid() == 0 {
		return // root may write every file
	}
	readOnly := filepath.Join(dir, "readonly.db")
	if err := os.WriteFile(readOnly, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(t.Context(), Config{Path: readOnly}); err == nil {
		_ = s.Close()
		t.Error("a file that cannot be written was opened, want an error")
	}
}

func TestOthersCannotReadTheFile(t *testing.T) {
	s := openAt(t, Config{})
	leased(t, s, 1)
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		st, err := os.Stat(s.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm()&0o077 != 0 {
			t.Errorf("lessor.db%s has mode %v, want no access for others", suffix, st.Mode())
		}
	}
}

func TestPanicRollsBack(t *testing.T) {
	s := openAt(t, Config{})
	held := leased(t, s, 1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = s.Update(t.Context(), func(tx scheduler.Tx) error {
			if err := finish(t.Context(), tx, leaseIDs(held), completed); err != nil {
				t.Error(err)
			}
			panic("boom")
		})
	}()
	update(t, s, func(tx scheduler.Tx) error { return finish(t.Context(), tx, leaseIDs(held), completed) })
}

func TestTransactionIsOverAfterUpdate(t *testing.T) {
	s := openAt(t, Config{})
	var kept scheduler.Tx
	update(t, s, func(tx scheduler.Tx) error {
		kept = tx
		return nil
	})
	if err := kept.SaveSetting(t.Context(), "a", []byte("b")); err == nil {
		t.Error("a transaction wrote after its end, want an error")
	}
}
