package sentinel

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"lessor"
)

// Limits of files. An exit record carries a result of up to 256 KiB, a checkpoint of 64 and an error of 8, which may
// grow sixfold when it is escaped.
const (
	maxSentinel = 64 << 10
	maxExit     = 1 << 20
)

// readTries is how often a file that is replaced while it is opened is opened again. A shim writes once in a while, so
// three times in a row is no shim.
const readTries = 3

// readFile returns a plain file of at most limit bytes in root, and its stamp. The error is fs.ErrNotExist, or an
// *InvalidError. os.Root keeps the path inside root; what it would still follow are links that stay inside, which is
// why the file must be the one that Lstat saw. O_NONBLOCK: a pipe put in its place must not hold us.
func readFile(root *os.Root, name string, limit int64) ([]byte, stamp, error) {
	for range readTries {
		seen, err := root.Lstat(name)
		if err != nil {
			return nil, stamp{}, unreadable(err)
		}
		if err := plain(seen, limit); err != nil {
			return nil, stampOf(seen), err
		}
		f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, stampOf(seen), unreadable(err)
		}
		data, same, err := readSame(f, seen, limit)
		_ = f.Close() // it was only read
		if err != nil || same {
			return data, stampOf(seen), err
		}
	}
	return nil, stamp{}, invalid(Unreadable, "it is replaced faster than it can be read")
}

// readSame reads f if it is the file that was seen.
func readSame(f *os.File, seen fs.FileInfo, limit int64) (data []byte, same bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, false, unreadable(err)
	}
	if !os.SameFile(seen, info) {
		return nil, false, nil
	}
	data, err = io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, true, unreadable(err)
	case int64(len(data)) > limit:
		return nil, true, invalid(TooLarge, "it grew over %d bytes", limit)
	}
	return data, true, nil
}

// plain refuses what is not a plain file of our own making.
func plain(info fs.FileInfo, limit int64) error {
	if kind := kindOf(info.Mode()); kind != "" {
		return invalid(kind, "it is not a plain file")
	}
	if linked(info) {
		return invalid(HardLink, "it has another name")
	}
	if info.Size() > limit {
		return invalid(TooLarge, "it has %d bytes, at most %d are read", info.Size(), limit)
	}
	return nil
}

func unreadable(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fs.ErrNotExist
	}
	return invalid(Unreadable, "%v", err)
}

// Sentinel returns the folder's sentinel. The error is fs.ErrNotExist, or an *InvalidError.
func (f *Folder) Sentinel() (Sentinel, error) {
	s, _, err := read(f, sentinelFile)
	return s, err
}

// Exit returns the folder's exit record. The error is fs.ErrNotExist, or an *InvalidError.
func (f *Folder) Exit() (Exit, error) {
	e, _, err := read(f, exitFile)
	return e, err
}

// A form is one kind of file: its name, its limit and how it is read.
type form[T any] struct {
	name  string
	limit int64
	parse func(lessor.JobID, []byte) (T, error)
}

var (
	sentinelFile = form[Sentinel]{sentinelName, maxSentinel, parseSentinel}
	exitFile     = form[Exit]{exitName, maxExit, parseExit}
)

func read[T any](f *Folder, as form[T]) (T, stamp, error) {
	data, at, err := readFile(f.root, as.name, as.limit)
	if err != nil {
		return *new(T), at, err
	}
	record, err := as.parse(f.id, data)
	return record, at, err
}
