package sentinel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"lessor"
)

// Folder is the folder of one job, open. It stays the same folder even if another folder takes its name.
type Folder struct {
	id   lessor.JobID
	path string
	root *os.Root
}

// Job returns the id of the job.
func (f *Folder) Job() lessor.JobID { return f.id }

// Path returns the absolute path of the folder.
func (f *Folder) Path() string { return f.path }

// Join returns the absolute path of a file in the folder.
func (f *Folder) Join(name string) string { return filepath.Join(f.path, name) }

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Gone reports whether the folder was removed or replaced. When in doubt it returns false.
func (f *Folder) Gone() bool {
	there, err := os.Lstat(f.path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	is, err := f.root.Stat(".")
	return err == nil && !os.SameFile(there, is)
}

// Lock takes the folder's lock, which is held as long as the returned file is open in any process. The file is nil if
// another process holds the lock.
func (f *Folder) Lock() (*os.File, error) { return f.lock(os.O_CREATE, false) }

// Locked reports whether the folder is locked, that is, whether an attempt is running here. It tries a shared lock,
// so that concurrent callers do not disturb each other.
func (f *Folder) Locked() (bool, error) {
	file, err := f.lock(0, true)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case file == nil:
		return true, nil
	}
	return false, file.Close()
}

// Holds returns nil if file, which another process handed over, is the folder's lock file and we hold the lock.
func (f *Folder) Holds(file *os.File) error {
	want, err := f.root.Lstat(lockName)
	if err != nil {
		return err
	}
	is, err := file.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(want, is) {
		return errors.New("it is another file")
	}
	if got, err := lock(file, false, false); err != nil || !got {
		return errors.Join(errors.New("another process holds it"), err)
	}
	return nil
}

func (f *Folder) lock(create int, shared bool) (*os.File, error) {
	file, err := f.root.OpenFile(lockName, os.O_RDWR|syscall.O_NONBLOCK|create, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", lockName, err)
	}
	got, err := lock(file, shared, false)
	if err == nil && got {
		return file, nil
	}
	if err != nil {
		err = fmt.Errorf("lock %s: %w", lockName, err)
	}
	_ = file.Close() // nothing was written
	return nil, err
}

// maxStop bounds the file of a stop request: a number, a line end, and some room.
const maxStop = 32

// AskToStop asks every attempt in the folder whose fence is lower than below to end.
func (f *Folder) AskToStop(below int64) error {
	return f.WriteFile(stopName, []byte(strconv.FormatInt(below, 10)+"\n"))
}

// AskedToStop reports whether the attempt with this fence must end. An unreadable request does not count, because any
// process could have written it.
func (f *Folder) AskedToStop(fence int64) (bool, error) {
	data, err := f.ReadFile(stopName, maxStop)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	below, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return false, invalid(Malformed, "%s holds no number", stopName)
	}
	return fence < below, nil
}
