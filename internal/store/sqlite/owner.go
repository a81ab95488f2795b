package sqlite

import (
	"fmt"
	"os"
)

// owner is the right to use a database file: a lock on a file beside it, held for as long as the store is open. SQLite's
// own locks do not keep a second server out, since two may take turns in one file.
type owner struct {
	file *os.File
}

// own takes the right, or refuses at once if another process, or another Store of this one, has it.
func own(path string) (*owner, error) {
	name := path + ".lock"
	f, err := lockFile(name)
	if err != nil {
		return nil, fmt.Errorf("take %s: %w", name, err)
	}
	if f == nil {
		return nil, fmt.Errorf("another process is using this database (it holds %s)", name)
	}
	return &owner{file: f}, nil
}

func (o *owner) release() error { return unlockFile(o.file) }
