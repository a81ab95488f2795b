package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var patchedFile = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)$`)

// TestFaultsCompile type-checks the packages that each fault changes: one that does not build proves nothing.
func TestFaultsCompile(t *testing.T) {
	faults, err := readFaults("faults")
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string][]string{} // those that a fault changes, by its name
	changed := map[string]bool{}
	for _, f := range faults {
		text, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range patchedFile.FindAllSubmatch(text, -1) {
			folder := path.Dir(string(m[1]))
			folders[f.name] = append(folders[f.name], folder)
			changed["./"+folder] = true
		}
		if folders[f.name] == nil {
			t.Errorf("%s changes no file", f.name)
		}
	}
	t.Chdir("..")
	checker := newChecker(t, slices.Sorted(maps.Keys(changed)))
	root, err := copyTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) }) // it is in the folder for temporary files
	for _, f := range faults {
		patch, err := filepath.Abs(filepath.Join("planted", f.path))
		if err != nil {
			t.Fatal(err)
		}
		if err := (tree{root}).apply(t.Context(), patch); err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders[f.name] {
			if err := checker.check(filepath.Join(root, folder)); err != nil {
				t.Errorf("%s: %s does not build: %v", f.name, folder, err)
			}
		}
		if err := (tree{root}).apply(t.Context(), "-R", patch); err != nil {
			t.Fatal(err)
		}
	}
}

// checker type-checks packages against what the compiler exported of those that they import.
type checker struct {
	files    *token.FileSet
	importer types.Importer
}

// newChecker builds all that packages import.
func newChecker(t *testing.T, packages []string) *checker {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go",
		append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, packages...)...)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[name] = file
	}
	files := token.NewFileSet()
	return &checker{files, importer.ForCompiler(files, "gc", func(name string) (io.ReadCloser, error) {
		if exports[name] == "" {
			return nil, fmt.Errorf("nothing that is checked imported %s before", name)
		}
		return os.Open(exports[name])
	})}
}

// check checks the package of a folder, without its tests.
func (c *checker) check(folder string) error {
	p, err := build.ImportDir(folder, 0)
	if err != nil {
		return err
	}
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.files, filepath.Join(folder, name), nil, 0)
		if err != nil {
			return err
		}
		parsed = append(parsed, f)
	}
	_, err = (&types.Config{Importer: c.importer}).Check(p.Name, c.files, parsed, nil)
	return err
}
