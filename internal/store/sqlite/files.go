package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"lessor/internal/scheduler"
)

// walSuffix names the write-ahead log beside the database.
const walSuffix = "-wal"

// files are the database and its write-ahead log as they were opened. If one of them is removed or replaced, SQLite goes
// on writing into files without a name, and what it commits is gone with the process. If one is overwritten or cut, what it
// held is gone at once.
type files struct {
	path     string
	db, wal  os.FileInfo
	log      *os.File // the WAL
	logSize  int64
	lookedAt time.Time
}

// lookEvery is how often a busy store looks at the names of its files. Not with each commit: a file whose times were read
// since its last write makes the next write, and its sync, dearer on Linux.
const lookEvery = 50 * time.Millisecond

// remember notes which files are open. The WAL is there from the first write on.
func (f *files) remember(path string) (err error) {
	f.path, f.lookedAt = path, time.Now()
	if f.db, err = os.Stat(path); err != nil {
		return err
	}
	if f.log, err = os.Open(path + walSuffix); err != nil {
		return err
	}
	f.wal, err = f.log.Stat()
	return err
}

// check returns an error that wraps scheduler.ErrBroken if the names no longer lead to the open files, or if one is shorter
// than it was at the last look. SQLite never cuts the database, and the WAL only back to walKeepBytes.
func (f *files) check() (err error) {
	f.lookedAt = time.Now()
	if f.db, err = isStill(f.path, f.db, f.db.Size()); err != nil {
		return err
	}
	f.wal, err = isStill(f.path+walSuffix, f.wal, min(f.wal.Size(), walKeepBytes))
	return err
}

// checkBusy checks the files if the last look was not just now.
func (f *files) checkBusy() error {
	if time.Since(f.lookedAt) < lookEvery {
		return nil
	}
	return f.check()
}

// checkLog notices that the WAL was cut since the last commit. The next commit would hide it: the file is as long as before
// then, with a hole in it.
func (f *files) checkLog() error {
	size, err := f.log.Seek(0, io.SeekEnd)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", scheduler.ErrBroken, err)
	case size < min(f.logSize, walKeepBytes):
		return fmt.Errorf("%w: %s was cut while it was in use", scheduler.ErrBroken, f.path+walSuffix)
	}
	f.logSize = size
	return nil
}

func (f *files) close() error {
	if f.log == nil {
		return nil
	}
	return f.log.Close()
}

// isStill returns what the file is now, or was if it is lost.
func isStill(name string, was os.FileInfo, size int64) (os.FileInfo, error) {
	is, err := os.Stat(name)
	switch {
	case err == nil && os.SameFile(was, is) && is.Size() >= size:
		return is, nil
	case err == nil && os.SameFile(was, is):
		err = errors.New("was cut or overwritten")
	case err == nil:
		err = errors.New("was replaced")
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("was removed")
	default:
		return was, fmt.Errorf("%w: %w", scheduler.ErrBroken, err)
	}
	return was, fmt.Errorf("%w: %s %w while it was in use", scheduler.ErrBroken, name, err)
}
