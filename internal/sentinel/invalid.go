package sentinel

import (
	"fmt"
	"io/fs"
)

// Reason says why a file is ignored.
type Reason string

// The reasons. Our shim makes no such file.
const (
	Symlink     Reason = "symlink"
	Pipe        Reason = "pipe"
	Socket      Reason = "socket"
	Device      Reason = "device"
	Directory   Reason = "directory"
	HardLink    Reason = "hard_link"
	TooLarge    Reason = "too_large"
	Malformed   Reason = "malformed"     // cut off, not JSON, or JSON of another kind
	OtherJob    Reason = "other_job"     // of another job than the folder's
	IllFormedID Reason = "ill_formed_id" // an id, or a folder's name, that no job can have
	Unreadable  Reason = "unreadable"
)

// InvalidError says why a file was ignored.
type InvalidError struct {
	Reason Reason
	Detail string
	cause  error // what the system said, or nil
}

func (e *InvalidError) Error() string { return string(e.Reason) + ": " + e.Detail }

// Unwrap returns what the system said, which may have nothing to do with the file.
func (e *InvalidError) Unwrap() error { return e.cause }

func invalid(r Reason, format string, args ...any) error {
	return &InvalidError{Reason: r, Detail: fmt.Sprintf(format, args...)}
}

// kindOf returns the reason to refuse a file of this kind, "" for a plain one.
func kindOf(mode fs.FileMode) Reason {
	switch {
	case mode.IsRegular():
		return ""
	case mode&fs.ModeSymlink != 0:
		return Symlink
	case mode.IsDir():
		return Directory
	case mode&fs.ModeNamedPipe != 0:
		return Pipe
	case mode&fs.ModeSocket != 0:
		return Socket
	default:
		return Device
	}
}
