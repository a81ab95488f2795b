package sentinel

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// stamp identifies one state of a file without reading it. Nobody can set back the change time.
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

// stampIn returns the stamp of a file in an open folder, without an allocation.
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
