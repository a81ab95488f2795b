package sqlite

import "os"

// lockInode locks the database itself: through a hard link or a mount of the file alone its lock file is another. It
// returns nil if another process holds the lock. On Linux this lock does not conflict with those of SQLite. The file
// stays open until SQLite has closed its own: closing any descriptor would release SQLite's locks.
func lockInode(path string) (*os.File, error) { return lockFile(path) }
