package sqlite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// storeFiles are the files of an open database.
var storeFiles = []string{"lessor.db", "lessor.db-mark", "lessor.db-shm", "lessor.db-wal", "lessor.db.lock"}

func TestBackupUnderLoadCanBeRestored(t *testing.T) {
	s := openAt(t, Config{})
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	load.Go(func() {
		for ctx.Err() == nil {
			held := leased(t, s, 20)
			update(t, s, func(tx scheduler.Tx) error { return finish(t.Context(), tx, leaseIDs(held[:10]), completed) })
		}
	})
	last := 0
	for range 5 {
		leased(t, s, 10)
		name := filepath.Join(dir, "copy.db")
		var copied bytes.Buffer
		if err := s.Backup(t.Context(), &copied); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, copied.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := Verify(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if n <= last {
			t.Fatalf("a copy has %d jobs, want more than the %d of the copy before it", n, last)
		}
		last = n
	}
	stop()
	load.Wait()
	checkFiles(t, dir, "copy.db")
	checkFiles(t, filepath.Dir(s.path), storeFiles...)
	restored := openAt(t, Config{Path: filepath.Join(dir, "copy.db")})
	leased(t, restored, 1)
}

// checkFiles fails the test unless the folder holds these files and no others.
func checkFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

func TestBackupThatIsCutOffFailsAndLeavesNoFile(t *testing.T) {
	s := openAt(t, Config{})
	leased(t, s, 50)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Backup(ctx, &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup with a cancelled context: %v, want context.Canceled", err)
	}
	if err := s.Backup(t.Context(), failingWriter{}); !errors.Is(err, errEnough) {
		t.Errorf("a backup to a writer that fails: %v, want the writer's error", err)
	}
	unfinished := s.path + copySuffix + "123"
	if err := os.WriteFile(unfinished, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openAt(t, Config{Path: s.path})
	checkFiles(t, filepath.Dir(again.path), storeFiles...)
}

// failingWriter refuses every write.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errEnough }

// TestVerifyFindsEveryDefect breaks a copy in every way that Verify looks for.
func TestVerifyFindsEveryDefect(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"a job in no place", "delete from queue", "in no place or in several"},
		{"a job in two places", "insert into delayed select *, 1, 'queued' from queue", "in no place or in several"},
		{"a queued row of another seq", "update queue set seq = seq + 1000", "in no place or in several"},
		{"a job leased twice", "insert into lease select n + 1000, id, job, lane, seq, attempt, max_attempts," +
			" interruptions, fence, steps, queued_at, tenant, null, units, worker," +
			" null, null, max_runtime_ms, issued_at," + //nolint:dupword // SQL
			" granted_ttl_ms, null, null, 0 from lease limit 1", //nolint:dupword // SQL
			"in no place or in several"},
		// The job has seq 3.
		{"a left-over row of a job", "insert into gone values (1000, x'06')", "in no place or in several"},
		{
			"a heartbeat without a lease", "insert into beat values (9999, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
			"heartbeats without a lease",
		},
		{"a log that cannot be read", "insert into gone values (1000, x'ff')", "cannot be read"},
		{"a lease without a job", "update lease set job = randomblob(16)", "in no place or in several"},
		{"only rows without jobs", "delete from job; delete from idempotency", "queued rows without a job"},
		{"a job without a lane", "delete from lane", "jobs without a lane"},
		{
			"a job that its definition does not list", "delete from definition_job",
			"that their definition does not list",
		},
		{
			"a list with another's job",
			"insert into definition_job select 'hourly', job, open from definition_job",
			"that are not their definition's",
		},
		{"a list of jobs that ended", "update definition_job set open = 0", "that are open and have ended, or neither"},
		{
			"a circuit without a definition", "insert into circuit values ('d', x'00', 'open', 1, 1, 1, null)",
			"circuits without a definition",
		},
		{"a key without a job", "insert into idempotency values (x'00', 'k', x'01', x'02')", "keys without a job"},
		{"another program's database", "drop table goose_db_version", "no database of lessor"},
		{"a newer schema", "insert into goose_db_version (version_id, is_applied) values (77, 1)", "version 77"},
		{
			"a damaged index", "pragma writable_schema = on; delete from sqlite_schema where name = 'lease_lock'",
			"damaged",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openAt(t, Config{})
			leased(t, s, 2)
			specs := drafts(3, func(s *rules.Spec) { s.Lane.Definition = "nightly" })
			update(t, s, func(tx scheduler.Tx) error { return submit(t.Context(), tx, specs) })
			name := filepath.Join(t.TempDir(), "copy.db")
			if err := s.copyInto(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			runScript(t, name, c.text)
			n, err := Verify(t.Context(), name)
			if c.want == "" && (err != nil || n != 5) {
				t.Errorf("a good copy: %d jobs, %v; want 5 jobs and no error", n, err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			checkFiles(t, filepath.Dir(name), "copy.db")
		})
	}
}

// runScript executes statements on a database file, on a connection that is not the store's.
func runScript(t *testing.T, path, text string) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteScript(conn, text, nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyRefusesALiveDatabase(t *testing.T) {
	s := openAt(t, Config{})
	leased(t, s, 2)
	if _, err := Verify(t.Context(), s.path); err == nil || !strings.Contains(err.Error(), "write-ahead log") {
		t.Errorf("a database in use: %v, want an error about its write-ahead log", err)
	}
	if _, err := Verify(t.Context(), s.path+".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v, want os.ErrNotExist", err)
	}
	checkFiles(t, filepath.Dir(s.path), storeFiles...)
}
