package sqlite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"lessor/internal/store"
	"lessor/internal/store/row"
)

const (
	// busyTimeout bounds the wait of a write for another process that holds the file's lock, such as a shell. No other
	// server uses the file. SQLite sleeps in real time, also in a synctest bubble.
	busyTimeout = 5 * time.Second
	// cacheKiB is the page cache of a connection. It holds the ends and the inner pages of all tables at a million
	// jobs; the operating system caches older pages. A larger one costs more: once it is full, most commits walk
	// through all of it (pcache1TruncateUnsafe), because balancing a b-tree borrows a page number beyond the end of the
	// file.
	cacheKiB = 8 << 10
	// checkpointPages is the size of the WAL at which the writer copies it back, 16 MiB: seldom enough to merge most
	// writes of a page, often enough to bound recovery.
	checkpointPages = 4000
	// walKeepBytes is the size to which the WAL is cut back after a long view let it grow.
	walKeepBytes = 64 << 20
)

// writer is the one connection that writes and checkpoints. It keeps its statements: to find one by its text costs a
// lookup and two calls each time.
type writer struct {
	conn *sqlite.Conn

	begin, commit, rollback *sqlite.Stmt

	job, queue, delayed, lease, beat, attempt, done, note bulk
	run, definition, tick, audit, journal                 bulk

	takeQueued, takeDelayed, takeLeases, takeBeats, takeDone *sqlite.Stmt
	isQueued, readJob                                        *sqlite.Stmt
	addGone, cutGone, dropQueued                             *sqlite.Stmt
	saveReport, saveSetting, addLane, markRun                *sqlite.Stmt
}

func openWriter(path, synchronous string) (_ *writer, err error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, fault("open the writer", err)
	}
	w := &writer{conn: conn}
	defer func() {
		if err != nil {
			_ = conn.Close() // the first error says why
		}
	}()
	conn.SetBusyTimeout(busyTimeout)
	if err := setWAL(conn); err != nil {
		return nil, err
	}
	for _, pragma := range []string{
		"synchronous = " + ofWriter(synchronous),
		"fullfsync = on", // macOS: its fsync alone does not reach the disk
		"foreign_keys = off",
		"temp_store = memory",
		fmt.Sprintf("cache_size = -%d", cacheKiB),
		fmt.Sprintf("wal_autocheckpoint = %d", checkpointPages),
		fmt.Sprintf("journal_size_limit = %d", walKeepBytes),
	} {
		if err := sqlitex.ExecuteTransient(conn, "pragma "+pragma, nil); err != nil {
			return nil, fault("set "+pragma, err)
		}
	}
	if err := w.prepare(); err != nil {
		return nil, fault("prepare statements", err)
	}
	return w, nil
}

// setWAL turns the write-ahead log on. It fails on file systems without shared memory, usually network file systems:
// there views would block writers, and locks do not hold.
func setWAL(conn *sqlite.Conn) error {
	var mode string
	err := sqlitex.ExecuteTransient(conn, "pragma journal_mode = wal", &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error {
			mode = stmt.ColumnText(0)
			return nil
		},
	})
	if err != nil {
		return fault("set journal_mode", err)
	}
	if mode != "wal" {
		return fmt.Errorf("journal_mode is %q and not wal: is the file on a network file system?", mode)
	}
	return nil
}

func (w *writer) prepare() (err error) {
	for _, p := range []struct {
		stmt **sqlite.Stmt
		text string
	}{
		{&w.begin, "begin immediate"},
		{&w.commit, "commit"},
		{&w.rollback, "rollback"},
		{&w.takeQueued, "delete from queue where seq = ? and job = ?"},
		{&w.takeDelayed, "delete from delayed where seq = ? and job = ?"},
		{&w.takeLeases, "delete from lease where n between ? and ?"},
		{&w.takeBeats, "delete from beat where n between ? and ?"},
		{&w.takeDone, "delete from done where seq = ? and job = ?"},
		{&w.isQueued, "select 1 from queue where seq = ? and job = ?"},
		{&w.readJob, readJobAt},
		{&w.addGone, addGone},
		{&w.cutGone, cutGone},
		{&w.dropQueued, dropQueued},
		{&w.saveReport, saveReport},
		{&w.saveSetting, saveSetting},
		{&w.addLane, addLane},
		{&w.markRun, markRun},
	} {
		if *p.stmt, err = w.conn.Prepare(p.text); err != nil {
			return err
		}
	}
	for _, p := range []struct {
		bulk          *bulk
		into, columns string
	}{
		{&w.job, "insert into job", jobColumns},
		{&w.queue, "insert into queue", row.Columns(row.Turn)},
		{&w.delayed, "insert into delayed", waitingColumns},
		{&w.lease, "insert into lease", grantColumns},
		{&w.beat, "replace into beat", beatColumns},
		{&w.attempt, "insert into attempt", attemptColumns},
		{&w.done, "insert into done", doneColumns},
		{&w.note, "insert into note", noteColumns},
		{&w.run, "insert into definition_job", row.Columns(row.OpenRun)},
		{&w.definition, "replace into definition", definitionColumns},
		{&w.tick, "insert into tick", tickColumns},
		{&w.audit, "insert into audit", auditColumns},
		{&w.journal, "insert into journal", row.Columns(newEntry)},
	} {
		if err = p.bulk.prepare(w.conn, p.into, p.columns); err != nil {
			return err
		}
	}
	return nil
}

// openReaders opens the connections of views. They seldom wait for a lock, and then until their context ends.
func openReaders(path string, n int) (*sqlitex.Pool, error) {
	if n <= 0 {
		n = defaultReaders
	}
	pool, err := sqlitex.NewPool(path, sqlitex.PoolOptions{
		Flags: sqlite.OpenReadOnly, PoolSize: n,
		PrepareConn: func(conn *sqlite.Conn) error {
			return sqlitex.ExecuteTransient(conn, fmt.Sprintf("pragma cache_size = -%d", cacheKiB), nil)
		},
	})
	return pool, fault("open readers", err)
}

func parseSynchronous(s string) (string, error) {
	switch s = strings.ToUpper(s); s {
	case "":
		return "FULL", nil
	case "FULL", "NORMAL", "OFF":
		return s, nil
	}
	return "", fmt.Errorf("synchronous is %q and not FULL, NORMAL or OFF", s)
}

// ofWriter is SQLite's setting for the writer. At FULL the store syncs commits by itself (syncing); SQLite syncs
// checkpoints.
func ofWriter(synchronous string) string {
	if synchronous == "FULL" {
		return "NORMAL"
	}
	return synchronous
}

// take lends a reader. Its statements are interrupted when ctx ends.
func (s *Store) take(ctx context.Context) (*sqlite.Conn, error) {
	select {
	case <-s.closed:
		return nil, store.ErrClosed
	default:
	}
	conn, err := s.readers.Take(ctx)
	if err == nil {
		return conn, nil
	}
	select {
	case <-s.closed:
		return nil, store.ErrClosed
	default:
		return nil, readFault(ctx, "take a reader", err)
	}
}

// giveBack returns a reader. The rollback must run even if the context of the view is done.
func (s *Store) giveBack(conn *sqlite.Conn) error {
	conn.SetInterrupt(nil)
	var err error
	if !conn.AutocommitEnabled() {
		err = query(conn, "rollback", nil, nil)
	}
	s.readers.Put(conn)
	return err
}
