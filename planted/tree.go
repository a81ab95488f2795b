package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// tree is a copy of the repository in which faults are planted.
type tree struct{ root string }

// copyTree copies the files that git knows, or would take, to a new temporary folder, as they are now.
func copyTree(ctx context.Context) (string, error) {
	list, err := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others",
		"--exclude-standard").Output()
	if err != nil {
		return "", fmt.Errorf("git ls-files: %w", err)
	}
	root, err := os.MkdirTemp("", "planted-")
	if err != nil {
		return "", err
	}
	for name := range bytes.SplitSeq(bytes.TrimRight(list, "\x00"), []byte{0}) {
		if err := copyFile(string(name), filepath.Join(root, string(name))); err != nil {
			return "", errors.Join(err, os.RemoveAll(root))
		}
	}
	return root, nil
}

func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil // removed, or a link
	}
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}

// plant applies a fault, runs its tests until one fails, and takes the fault back. It returns the test that caught it.
func (t tree) plant(ctx context.Context, f fault) (by string, err error) {
	path, err := filepath.Abs(f.path)
	if err != nil {
		return "", err
	}
	if err := t.apply(ctx, path); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, t.apply(ctx, "-R", path)) }()
	for _, c := range f.tests {
		failed, _, err := t.test(ctx, c)
		if err != nil || failed != "" {
			return failed, err
		}
	}
	return "", errors.New("all of its tests pass")
}

func (t tree) apply(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"apply"}, args...)...)
	cmd.Dir = t.root
	// The copy is no repository; without this one around it would be taken.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(t.root))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git apply: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// test runs tests and returns the innermost that failed first; "" if none did. A test that does not build is an error.
func (t tree) test(ctx context.Context, c catcher) (failed, output string, err error) {
	// -trimpath lets Go use what it built for other copies; what a fault looks like to vet does not matter.
	cmd := exec.CommandContext(ctx, "go", "test", "-trimpath", "-vet=off", "-count=1", "-timeout=5m", "-failfast",
		"-run", pattern(c.names), c.pkg)
	cmd.Dir = t.root
	out, err := cmd.CombinedOutput()
	output = string(out)
	switch {
	case err == nil && strings.Contains(output, "no tests to run"):
		return "", output, fmt.Errorf("%s has no test %s", c.pkg, strings.Join(c.names, ", "))
	case err == nil:
		return "", output, nil
	case strings.Contains(output, "build failed]") || strings.Contains(output, "setup failed]"):
		return "", output, fmt.Errorf("%s does not build:\n%s", c.pkg, output)
	}
	names := failure.FindAllStringSubmatch(output, -1)
	if names == nil { // a panic, a data race, or the time-out
		return strings.Join(c.names, " or "), output, nil
	}
	return names[len(names)-1][1], output, nil
}

// pattern is what go test -run takes for tests with these names.
func pattern(names []string) string {
	all := make([]string, len(names))
	for i, n := range names {
		parts := strings.Split(n, "/")
		for j, p := range parts {
			parts[j] = "^" + regexp.QuoteMeta(p) + "$"
		}
		all[i] = strings.Join(parts, "/")
	}
	return strings.Join(all, "|")
}
