//go:build !linux

package sentinel

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// stamp tells two states of a file apart without reading it, here by what every system has.
type stamp struct {
	size  int64
	mtime time.Time
}

func stampOf(info fs.FileInfo) stamp { return stamp{size: info.Size(), mtime: info.ModTime()} }

// stampIn returns the stamp of a file in a folder that is open.
func stampIn(dir *os.File, name string) (stamp, error) {
	info, err := os.Lstat(filepath.Join(dir.Name(), name))
	if err != nil {
		return stamp{}, err
	}
	return stampOf(info), nil
}

// linked is not told here.
func linked(fs.FileInfo) bool { return false }
