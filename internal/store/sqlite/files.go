package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"lessor/internal/scheduler"
)

// walSuffix names the write-ahead log beside the database.
const walSuffix = "-wal"

// files are the database and its write-ahead log as they were opened. If one of them is removed or replaced, SQLite goes on writing into
// files without a name, and what it commits is gone with the process. If one is overwritten or cut, what it held is gone at once.
type files struct {
	path    string
	db, wal os.FileInfo
}

// remember notes which files are open. The WAL is there from the first write on.
func (f *files) remember(path string) (err error) {
	f.path = path
	if f.db, err = os.Stat(path); err != nil {
		return err
	}
	f.wal, err = os.Stat(path + walSuffix)
	return err
}

// check returns an error that wraps scheduler.ErrBroken if the names no longer lead to the open files, or if one is shorter than it was at
// the last look. It costs two system calls. SQLite never cuts the database, and the WAL only back to walKeepBytes.
func (f *files) check() (err error) {
	if f.db, err = isStill(f.path, f.db, f.db.Size()); err != nil {
		return err
	}
	f.wal, err = isStill(f.path+walSuffix, f.wal, min(f.wal.Size(), walKeepBytes))
	return err
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
