//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sqlite

import (
	"errors"
	"io/fs"
	"os"
)

// lockFile creates the file, or returns nil if it is there. Without flock the file outlives a process that was killed:
// the operator has to remove it.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	return f, err
}

// links is the number of a file's names, which is not known here.
func links(os.FileInfo) uint64 { return 1 }

func unlockFile(f *os.File) error {
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
