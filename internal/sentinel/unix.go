//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sentinel

import (
	"errors"
	"os"
	"syscall"

	"github.com/google/renameio/v2"
)

// replaceFile writes data to a temporary file, syncs it, renames it to name, and syncs the folder.
func replaceFile(root *os.Root, name string, data []byte) error {
	f, err := renameio.NewPendingFile(name, renameio.WithRoot(root), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Cleanup())
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return errors.Join(err, f.Cleanup())
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// lock takes the lock of an open file, with wait also one that another process still holds, and reports whether it
// succeeded. A process that inherits the open file holds the same lock. The lock is released when the last of these
// processes closes the file or ends.
func lock(f *os.File, shared, wait bool) (bool, error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err := syscall.Flock(int(f.Fd()), how)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		}
		return err == nil, err
	}
}
