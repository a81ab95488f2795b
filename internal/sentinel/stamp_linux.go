package sentinel

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
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

// stampIn returns the stamp of a file in a folder that is open. The way there is short, and nothing is allocated.
func stampIn(dir *os.File, name string) (stamp, error) {
	var st unix.Stat_t
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	return stamp{inode: st.Ino, size: st.Size, mtime: syscall.Timespec(st.Mtim), change: syscall.Timespec(st.Ctim)}, err
}

// linked reports whether a file has more than one name.
func linked(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}
