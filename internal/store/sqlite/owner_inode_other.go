//go:build !linux

package sqlite

import "os"

// lockInode only opens the file: elsewhere a lock on it would be in the way of SQLite's own. A second name is refused all the same.
func lockInode(path string) (*os.File, error) { return os.Open(path) }
