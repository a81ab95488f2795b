//go:build !linux

package sentinel

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// stamp identifies one state of a file without reading it, by what every system has.
type stamp struct {
	size  int64
	mtime time.Time
}

func stampOf(info fs.FileInfo) stamp { return stamp{size: info.Size(), mtime: info.ModTime()} }

// stampIn returns the stamp of a file in an open folder.
func stampIn(dir *os.File, name string) (stamp, error) {
	info, err := os.Lstat(filepath.Join(dir.Name(), name))
	if err != nil {
		return stamp{}, err
	}
	return stampOf(info), nil
}

// linked returns false: not every system counts links.
func linked(fs.FileInfo) bool { return false }
