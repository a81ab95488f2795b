package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"

	"lessor/internal/rules"
	"lessor/internal/store"
)

// noJob says that a row p of a place belongs to no job.
const noJob = `not exists (select 1 from job where id = p.job and seq = p.seq)`

// faults are the queries that count what must not exist: jobs that are not in exactly one place, rows in a place
// without a job, rows without a lane, and lists of definitions' jobs that do not match the places.
var faults = []struct{ what, text string }{
	{"jobs that are in no place or in several", `select count(*) from job j where
		exists (select 1 from queue where seq = j.seq and job = j.id and seq not in left_over) +
		exists (select 1 from delayed where seq = j.seq and job = j.id) +
		(select count(*) from held where seq = j.seq and job = j.id) +
		exists (select 1 from done where seq = j.seq and job = j.id) <> 1`},
	{"queued rows without a job", `select count(*) from queue p where seq not in left_over and ` + noJob},
	{"delayed rows without a job", `select count(*) from delayed p where ` + noJob},
	{"leases without a job", `select count(*) from lease p where ` + noJob},
	{"ended rows without a job", `select count(*) from done p where ` + noJob},
	{"heartbeats without a lease", `select count(*) from beat where n not in (select n from lease)`},
	{"jobs without a lane", `select count(*) from job where not exists (select 1 from lane where id = job.lane)`},
	{"jobs that their definition does not list", `select count(*) from job cross join lane on lane.id = job.lane
		where lane.definition <> '' and not exists
		(select 1 from definition_job where definition = lane.definition and job = job.id)`},
	{"listed jobs that are not their definition's", `select count(*) from definition_job d where not exists
		(select 1 from job join lane on lane.id = job.lane where job.id = d.job and lane.definition = d.definition)`},
	{"listed jobs that are open and have ended, or neither", `select count(*) from definition_job d where d.open =
		exists (select 1 from job cross join done on done.seq = job.seq where job.id = d.job)`},
	{"circuits without a definition", `select count(*) from circuit
		where definition not in (select id from definition)`},
	{"idempotency keys without a job", `select count(*) from idempotency i
		where not exists (select 1 from job where id = i.job)`},
}

// Verify reads the whole copy of a database that Backup made, and returns the number of its jobs. It takes no
// ownership, writes nothing, and leaves no file beside the copy.
func Verify(ctx context.Context, path string) (jobs int, err error) {
	conn, err := openCopy(path)
	if err != nil {
		return 0, fmt.Errorf("verify %s: %w", path, err)
	}
	defer func() {
		conn.SetInterrupt(nil)
		err = errors.Join(err, conn.Close())
	}()
	conn.SetInterrupt(ctx.Done())
	jobs, err = verify(conn)
	return jobs, readFault(ctx, "verify "+path, err)
}

// openCopy opens a database that no process changes. It refuses one with a WAL, which SQLite would not read.
func openCopy(path string) (*sqlite.Conn, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(full); err != nil {
		return nil, err
	}
	if wal, err := os.Stat(full + "-wal"); err == nil && wal.Size() > 0 {
		return nil, errors.New("it has a write-ahead log beside it:" +
			" this is a database in use, or one that was not closed, and no copy")
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	conn, err := sqlite.OpenConn(fileURI(full, "immutable", "1"), sqlite.OpenReadOnly|sqlite.OpenURI)
	return conn, fault("open", err)
}

func verify(conn *sqlite.Conn) (jobs int, err error) {
	knows, err := store.NewestMigration(migrations)
	if err != nil {
		return 0, err
	}
	damage, err := text(conn, "pragma integrity_check(1)")
	if err != nil {
		return 0, fmt.Errorf("check integrity: %w", err)
	}
	if damage != "ok" {
		return 0, fmt.Errorf("it is damaged: %s", damage)
	}
	is, err := schemaVersion(conn)
	if err != nil {
		return 0, fmt.Errorf("it is no database of lessor: %w", err)
	}
	stated, err := text(conn, readStated)
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	if err := rules.CheckSchema(is, knows, stated); err != nil {
		return 0, err
	}
	if err := prepareVerify(conn); err != nil {
		return 0, fmt.Errorf("read leases and the queue: %w", err)
	}
	for _, a := range faults {
		n, err := count(conn, a.text)
		if err != nil {
			return 0, fmt.Errorf("look for %s: %w", a.what, err)
		}
		if n != 0 {
			return 0, fmt.Errorf("it has %d %s", n, a.what)
		}
	}
	n, err := count(conn, "select count(*) from job")
	return int(n), err
}

// prepareVerify makes temporary tables in memory where the database has no index: of leases by seq, and of the
// left-over rows of the queue.
func prepareVerify(conn *sqlite.Conn) error {
	for _, text := range []string{
		"pragma temp_store = memory",
		"create temp table left_over (seq integer primary key)",
		"create temp table held as select seq, job from lease",
		"create index temp.held_seq on held (seq)",
	} {
		if err := query(conn, text, nil, func(*result) error { return nil }); err != nil {
			return err
		}
	}
	left, _, err := readGone(conn)
	if err != nil {
		return err
	}
	var seqs []int64
	for _, key := range left.keys() {
		seqs = left.appendChunk(seqs[:0], key)
		for _, seq := range seqs {
			if err := query(conn, "insert into left_over values (?)", func(a *args) { a.Int(seq) }, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func schemaVersion(conn *sqlite.Conn) (int64, error) {
	return count(conn, "select max(version_id) from goose_db_version where is_applied")
}

// count returns the number that a query returns.
func count(conn *sqlite.Conn, text string) (n int64, err error) {
	err = query(conn, text, nil, func(r *result) error {
		n = r.Int()
		return nil
	})
	return n, err
}
