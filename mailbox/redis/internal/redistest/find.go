// Package redistest provides Redis to tests: one throwaway server for each test binary, on a socket in its own folder.
//
// LESSOR_TEST_REDIS names another server instead, by its URL; tests use keys of their own there. Without it, Find
// looks for redis-server or valkey-server on PATH; if there is none, a test fails with instructions. The server stops
// with the test binary, also if that is killed, and its folder is removed.
package redistest

import (
	"errors"
	"os/exec"
)

// Environment names another server for tests.
const Environment = "LESSOR_TEST_REDIS"

var errNone = errors.New("no Redis here: install one (Debian: apt-get install redis-server), put redis-server on" +
	" PATH, or set " + Environment + " to the URL of a server for tests")

// Find returns the server's program.
func Find() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", errNone
}
