package sentinel

import (
	"encoding/json"
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

// readTries bounds how often a file is opened because it was replaced meanwhile. A shim writes rarely, so it does not
// replace a file three times in a row.
const readTries = 3

// readFile returns a plain file of at most limit bytes in root, and its stamp. The error is fs.ErrNotExist, or an
// *InvalidError. os.Root keeps the path inside root but follows links that stay inside, so the opened file must be the
// one that Lstat saw. With O_NONBLOCK a pipe in its place does not block the reader.
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

// plain returns an error for anything but a plain file of at most limit bytes that has one name.
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
	return &InvalidError{Reason: Unreadable, Detail: err.Error(), cause: err}
}

// Sentinel returns the folder's sentinel. The error is fs.ErrNotExist, or an *InvalidError.
func (f *Folder) Sentinel() (Sentinel, error) {
	s, _, err := f.readSentinel()
	return s, err
}

func (f *Folder) readSentinel() (s Sentinel, at stamp, err error) {
	data, at, err := readFile(f.root, sentinelName, maxSentinel)
	if err == nil {
		err = parse(data, &s, func() error { return s.check(f.id) })
	}
	return s, at, err
}

// Exit returns the folder's exit record. The error is fs.ErrNotExist, or an *InvalidError.
func (f *Folder) Exit() (e Exit, err error) {
	data, _, err := readFile(f.root, exitName, maxExit)
	if err == nil {
		err = parse(data, &e, func() error { return e.check(f.id) })
	}
	return e, err
}

// parse decodes and checks a record. An id that is none is another reason to refuse it than a file that was cut off.
func parse(data []byte, into any, check func() error) error {
	err := json.Unmarshal(data, into)
	if err == nil {
		return check()
	}
	var head struct {
		JobID *string `json:"jobId"`
	}
	if json.Unmarshal(data, &head) == nil && head.JobID != nil {
		if _, bad := lessor.ParseUUID(*head.JobID); bad != nil {
			return invalid(IllFormedID, "jobId %.40q is no job's id", *head.JobID)
		}
	}
	return invalid(Malformed, "%v", err)
}
