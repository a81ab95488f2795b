package sentinel

import (
	"io/fs"
	"syscall"
)

// stamp tells two states of a file apart without reading it. The change time is the one that nobody can set back.
type stamp struct {
	inode         uint64
	size          int64
	mtime, change syscall.Timespec
}

func stampOf(info fs.FileInfo) stamp {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}
	}
	return stamp{inode: st.Ino, size: st.Size, mtime: st.Mtim, change: st.Ctim}
}

// linked reports whether a file has more than one name.
func linked(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}
