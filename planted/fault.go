package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fault is one patch.
type fault struct {
	name    string // of its file, without .patch
	path    string
	what    string
	promise string
	tests   []catcher
}

// catcher is tests of one package, each by its full name: TestStore/Tick/OneRowEach.
type catcher struct {
	pkg   string
	names []string
}

// readFaults reads the patches of a folder, in the order of their names.
func readFaults(folder string) ([]fault, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil {
		return nil, err
	}
	faults := make([]fault, len(paths))
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if faults[i], err = parse(path, string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return faults, nil
}

// parse reads the header of a patch.
func parse(path, text string) (fault, error) {
	f := fault{path: path, name: strings.TrimSuffix(filepath.Base(path), ".patch")}
	header, _, ok := strings.Cut(text, "\ndiff --git ")
	if !ok {
		return f, errors.New("it has no patch of git")
	}
	for line := range strings.Lines(header) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch words := strings.Fields(value); {
		case name == "Fault":
			f.what = value
		case name == "Promise":
			f.promise = value
		case name == "Test" && len(words) > 1:
			f.tests = append(f.tests, catcher{words[0], words[1:]})
		case name != "":
			return f, fmt.Errorf("its header has a line that is not known: %q", line)
		}
	}
	if f.what == "" || f.promise == "" || len(f.tests) == 0 {
		return f, errors.New("its header must say Fault, Promise and Test, with a package and names")
	}
	return f, nil
}
