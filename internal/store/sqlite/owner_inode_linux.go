package sqlite

import "os"

// lockInode locks the database itself, whatever its name: through a hard link or a mount of the file alone its lock file is another. It
// returns nil if somebody else holds the lock. On Linux this lock and those of SQLite do not see each other. The file stays open
// until SQLite has closed its own: closing any would give SQLite's locks away.
func lockInode(path string) (*os.File, error) { return lockFile(path) }
