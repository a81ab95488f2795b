//go:build !linux

package sqlite

import "os"

// lockInode only opens the file: on these systems a lock on it would conflict with SQLite's own. A second name is still
// refused.
func lockInode(path string) (*os.File, error) { return os.Open(path) }
