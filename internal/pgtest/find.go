package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// errNone says how to provide a PostgreSQL.
var errNone = errors.New("no PostgreSQL here: install one (Debian: apt-get install postgresql), put initdb on PATH," +
	" or set LESSOR_TEST_POSTGRES to the URL of a server on which databases may be created")

// Find returns the folder of the programs of a PostgreSQL.
func Find() (string, error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if initdb, err = filepath.EvalSymlinks(initdb); err == nil {
			return filepath.Dir(initdb), nil
		}
	}
	var found []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin/initdb", "/usr/pgsql-*/bin/initdb", "/usr/local/pgsql/bin/initdb",
		"/opt/homebrew/opt/postgresql*/bin/initdb",
	} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		found = append(found, names...)
	}
	if len(found) == 0 {
		return "", errNone
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil // the newest
}

// Install is Find, and installs Debian's package if there is no PostgreSQL and the caller is root.
func Install(ctx context.Context) (string, error) {
	bin, err := Find()
	if err == nil || !errors.Is(err, errNone) {
		return bin, err
	}
	apt, lookErr := exec.LookPath("apt-get")
	if lookErr != nil || os.Geteuid() != 0 {
		return "", errNone
	}
	fmt.Fprintln(os.Stderr, "pgtest: installing postgresql with apt-get, once")
	for _, args := range [][]string{
		{"update", "-q"}, {"install", "-q", "-y", "--no-install-recommends", "postgresql"},
	} {
		cmd := exec.CommandContext(ctx, apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("apt-get %s: %w\n%s\n%w", args[0], err, out, errNone)
		}
	}
	return Find()
}
