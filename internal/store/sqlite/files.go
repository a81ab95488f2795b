package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"lessor/internal/scheduler"
)

// walSuffix names the write-ahead log beside the database.
const walSuffix = "-wal"

// files are the database and its write-ahead log as they were opened. If one of them is removed or replaced, SQLite
// continues to write into a file without a name, and its commits are lost when the process ends. If one is
// overwritten or cut, its content is lost at once.
type files struct {
	path    string
	log     *os.File // the WAL
	logSize int64
	index   *os.File // the log's index; closing it while SQLite has it open would release SQLite's locks
	header  [indexBytes]byte

	mu        sync.Mutex // for the fields below
	db, wal   os.FileInfo
	checkedAt time.Time
}

// checkEvery is how often a busy store checks the names of its files. It does not check with each commit: on Linux a
// write, and its sync, is slower if the times of the file were read since the last one.
const checkEvery = 50 * time.Millisecond

// remember records which files are open. SQLite makes the WAL and its index when it first reads the database.
func (f *files) remember(path string) (err error) {
	f.path, f.checkedAt = path, time.Now()
	if f.db, err = os.Stat(path); err != nil {
		return err
	}
	if f.log, err = os.Open(path + walSuffix); err != nil {
		return err
	}
	if f.wal, err = f.log.Stat(); err != nil {
		return err
	}
	f.index, err = os.Open(path + "-shm")
	return err
}

// position reads the position of the last commit from the log's index.
func (f *files) position() (position, error) {
	const tries = 100 // another process may be writing the index, which takes less than a microsecond
	for range tries {
		if _, err := f.index.ReadAt(f.header[:], 0); err != nil {
			return position{}, fmt.Errorf("%w: read the index of the log: %w", scheduler.ErrBroken, err)
		}
		if at, ok := parseIndex(&f.header); ok {
			return at, nil
		}
	}
	return position{}, fmt.Errorf("%w: the index of the log (%s-shm) cannot be read", scheduler.ErrBroken, f.path)
}

// check returns an error that wraps scheduler.ErrBroken if the names no longer lead to the open files, or if one is
// shorter than at the last check. SQLite never cuts the database, and cuts the WAL only back to walKeepBytes.
func (f *files) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.checkNames()
}

// checkNames is check. The caller has locked mu.
func (f *files) checkNames() (err error) {
	f.checkedAt = time.Now()
	if f.db, err = isStill(f.path, f.db, f.db.Size()); err != nil {
		return err
	}
	f.wal, err = isStill(f.path+walSuffix, f.wal, min(f.wal.Size(), walKeepBytes))
	return err
}

// checkBusy checks the files if checkEvery has passed since the last check.
func (f *files) checkBusy() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checkedAt) < checkEvery {
		return nil
	}
	return f.checkNames()
}

// checkLog returns an error if the WAL was cut since the last commit. The next commit would hide it: the file would
// be as long as before, with a hole in it.
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

func (f *files) close() (err error) {
	for _, file := range []*os.File{f.log, f.index} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

// isStill returns the present state of a file, or an error if it is not the file that it was or is shorter than size.
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
