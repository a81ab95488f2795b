//go:build !(darwin || dragonfly || freebsd || linux)

package sqlite

import "errors"

func freeSpace(string) (int64, error) {
	return 0, errors.New("not known on this system")
}
