//go:build darwin || dragonfly || freebsd || linux

package sqlite

import "syscall"

// freeSpace returns the bytes that are free to us on the file system of dir.
func freeSpace(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // their types differ between systems
}
