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
// files without a name, and what it commits is gone with the process.
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

// check returns an error that wraps scheduler.ErrBroken if the names no longer lead to the open files. It costs two system calls.
func (f *files) check() error {
	if err := isStill(f.path, f.db); err != nil {
		return err
	}
	return isStill(f.path+walSuffix, f.wal)
}

func isStill(name string, was os.FileInfo) error {
	is, err := os.Stat(name)
	switch {
	case err == nil && os.SameFile(was, is):
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s was replaced while it was in use", scheduler.ErrBroken, name)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s was removed while it was in use", scheduler.ErrBroken, name)
	}
	return fmt.Errorf("%w: %w", scheduler.ErrBroken, err)
}
