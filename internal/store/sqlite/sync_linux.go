package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// syncData syncs the content of a file. It leaves out the file's times, which would cost a second write.
func syncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
