//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sentinel

import (
	"errors"
	"os"
)

// Without flock and an atomic rename nothing here could be promised.
func replaceFile(*os.Root, string, []byte) error { return errors.ErrUnsupported }

func lock(*os.File, bool, bool) (bool, error) { return false, errors.ErrUnsupported }
