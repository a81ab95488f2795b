package sqlite

import (
	"errors"
	"fmt"
	"os"
)

// owner is the right to use a database file: a lock on a file beside it and one on the file itself, held while the
// store is open. SQLite's own locks do not keep a second server out: two may write to one file by turns.
type owner struct {
	file, inode *os.File
}

// own takes the right, or refuses at once if another process, or another Store of this one, has it. It also refuses a
// file with a second name: the write-ahead log lies beside one name only, and a server that opens the file by the other
// would not see it.
func own(path string) (_ *owner, err error) {
	o, name := &owner{}, path+".lock"
	defer func() {
		if err != nil {
			_ = o.release() // the first error says why
		}
	}()
	if o.file, err = lockFile(name); err != nil {
		return nil, fmt.Errorf("take %s: %w", name, err)
	}
	if o.file == nil {
		return nil, fmt.Errorf("another process is using this database (it holds %s)", name)
	}
	if o.inode, err = lockInode(path); err != nil {
		return nil, fmt.Errorf("lock the database: %w", err)
	}
	if o.inode == nil {
		return nil, errors.New("another process is using this database under another name")
	}
	st, err := o.inode.Stat()
	if err != nil {
		return nil, err
	}
	if n := links(st); n > 1 {
		return nil, fmt.Errorf("the file has %d names (hard links): remove all but one,"+
			" since its write-ahead log lies beside one of them only", n)
	}
	return o, nil
}

func (o *owner) release() (err error) {
	if o.inode != nil {
		err = o.inode.Close()
	}
	if o.file != nil {
		err = errors.Join(err, unlockFile(o.file))
	}
	return err
}
