package sqlite

import (
	"errors"
	"fmt"
	"os"
)

// fileLock is the right to use a database file: a lock on a file beside it and one on the file itself, held while the
// store is open. SQLite's own locks do not keep a second server out: two may write to one file by turns.
type fileLock struct {
	file, inode *os.File
}

// lockDatabase takes the right, or refuses at once if another process, or another Store of this one, has it. It also
// refuses a file with a second name: the write-ahead log lies beside one name only, and a server that opens the file by
// the other would not see it.
func lockDatabase(path string) (_ *fileLock, err error) {
	l, name := &fileLock{}, path+".lock"
	defer func() {
		if err != nil {
			_ = l.release() // the first error says why
		}
	}()
	if l.file, err = lockFile(name); err != nil {
		return nil, fmt.Errorf("take %s: %w", name, err)
	}
	if l.file == nil {
		return nil, fmt.Errorf("another process is using this database (it holds %s): stop it, or give each server "+
			"a data folder of its own", name)
	}
	if l.inode, err = lockInode(path); err != nil {
		return nil, fmt.Errorf("lock the database: %w", err)
	}
	if l.inode == nil {
		return nil, errors.New("another process is using this database under another name")
	}
	st, err := l.inode.Stat()
	if err != nil {
		return nil, err
	}
	if n := links(st); n > 1 {
		return nil, fmt.Errorf("the file has %d names (hard links): remove all but one,"+
			" since its write-ahead log lies beside one of them only", n)
	}
	return l, nil
}

func (l *fileLock) release() (err error) {
	if l.inode != nil {
		err = l.inode.Close()
	}
	if l.file != nil {
		err = errors.Join(err, unlockFile(l.file))
	}
	return err
}
