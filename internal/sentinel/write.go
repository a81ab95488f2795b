package sentinel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// WriteSentinel replaces the folder's sentinel. Only the holder of the folder's lock may call it.
func (f *Folder) WriteSentinel(s Sentinel) error {
	if err := s.check(f.id); err != nil {
		return err
	}
	return f.writeJSON(sentinelName, s, maxSentinel)
}

// WriteExit writes the folder's exit record. When it returns, the record survives a power loss.
func (f *Folder) WriteExit(e Exit) error {
	if err := e.check(f.id); err != nil {
		return err
	}
	return f.writeJSON(exitName, e, maxExit)
}

// RemoveSentinel ends the pulse. A missing sentinel is no error.
func (f *Folder) RemoveSentinel() error { return f.Remove(sentinelName) }

// RemoveExit removes the exit record of an earlier attempt. A missing record is no error.
func (f *Folder) RemoveExit() error { return f.Remove(exitName) }

// Remove removes a file of the folder. A missing file is no error.
func (f *Folder) Remove(name string) error {
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// WriteFile replaces a file of the folder, readable by its owner only: a reader sees the old content or the new.
func (f *Folder) WriteFile(name string, data []byte) error {
	if err := replaceFile(f.root, name, data); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Create creates a file of the folder, open for reading and writing, and readable by its owner only. It removes an
// existing file instead of opening it, because that may be a link or a pipe.
func (f *Folder) Create(name string) (*os.File, error) {
	if err := f.Remove(name); err != nil {
		return nil, err
	}
	return f.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// Append opens a file of the folder for appending, readable by its owner only, and creates it if it is missing. The
// caller has made sure that an existing one is a plain file.
func (f *Folder) Append(name string) (*os.File, error) {
	return f.root.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}

// ReadFile returns a plain file of at most limit bytes. The error is fs.ErrNotExist, or an *InvalidError.
func (f *Folder) ReadFile(name string, limit int64) ([]byte, error) {
	data, _, err := readFile(f.root, name, limit)
	return data, err
}

func (f *Folder) writeJSON(name string, v any, limit int) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	if len(data) > limit {
		return invalid(TooLarge, "%s would have %d bytes, at most %d are read", name, len(data), limit)
	}
	return f.WriteFile(name, data)
}

// Tidy removes the unfinished files of killed writers. Only the holder of the folder's lock may call it, because no
// other process is writing then.
func (f *Folder) Tidy() error {
	dir, err := f.root.Open(".")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close() // it was only read
	for _, name := range names {
		if isLeftover(name) {
			err = errors.Join(err, f.Remove(name))
		}
	}
	return err
}

// isLeftover reports whether replaceFile gives such a name to a temporary file.
func isLeftover(name string) bool {
	base, ok := strings.CutPrefix(name, tempPrefix)
	return ok && strings.TrimRight(base, "0123456789") != base
}
