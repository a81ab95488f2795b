// Package redistest lends tests a Redis: a throwaway server, started once a test binary, on a socket in its own folder.
//
// LESSOR_TEST_REDIS is the URL of another server to use instead; tests use keys of their own there. Without it, Find
// looks for redis-server or valkey-server on PATH; if there is none, a test fails and says what to do. The server stops
// with the test binary, even if that is killed, and its folder is removed.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// Install returns the server's program, installing Debian's package where there is none and that is possible.
func Install(ctx context.Context) (string, error) {
	program, err := Find()
	if err == nil {
		return program, nil
	}
	apt, lookErr := exec.LookPath("apt-get")
	if lookErr != nil || os.Geteuid() != 0 {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "redistest: installing redis-server with apt-get, once")
	for _, args := range [][]string{
		{"update", "-q"},
		{"install", "-q", "-y", "--no-install-recommends", "redis-server"},
	} {
		cmd := exec.CommandContext(ctx, apt, args...)
		// A package that starts a daemon would hold a port that is not ours.
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("apt-get %s: %w\n%s\n%w", args[0], err, out, errNone)
		}
	}
	return Find()
}
