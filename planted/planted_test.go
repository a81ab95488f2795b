package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFaultsApply keeps the faults from rotting: each patch applies to the tree as it is, and the tests that it names
// are there. That they catch it is for `make planted`.
func TestFaultsApply(t *testing.T) {
	faults, err := readFaults("faults")
	if err != nil {
		t.Fatal(err)
	}
	if len(faults) < 30 {
		t.Errorf("there are %d faults, want 30 or more", len(faults))
	}
	for _, f := range faults {
		path, err := filepath.Abs(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := (tree{".."}).apply(t.Context(), "--check", path); err != nil {
			t.Errorf("%s: %v\nchange the patch so that it breaks the same promise in today's code", f.name, err)
		}
		for _, c := range f.tests {
			for _, name := range c.names {
				if !hasTest(t, filepath.Join("..", c.pkg), name) {
					t.Errorf("%s: %s has no test %s", f.name, c.pkg, name)
				}
			}
		}
	}
}

// hasTest reports whether a package has the function of a test.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	top, _, _ := strings.Cut(name, "/")
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(top) + `\(`).Match(text) {
			return true
		}
	}
	return false
}

// TestPlant plants faults in a toy: one that its test catches, one that it does not, one that does not build, and one
// that does not apply.
func TestPlant(t *testing.T) {
	toy := tree{t.TempDir()}
	write := func(name, text string) string {
		path := filepath.Join(toy.root, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const source = "package toy\n\nfunc add(a, b int) int { return a + b }\n"
	write("go.mod", "module toy\n")
	write("add.go", source)
	write("add_test.go", "package toy\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n"+
		"\tt.Run(\"of=two\", func(t *testing.T) {\n\t\tif add(2, 2) != 4 {\n\t\t\tt.Error(\"wrong\")\n\t\t}\n\t})\n}\n")
	for _, c := range []struct{ instead, by, err string }{
		{"return a - b", "TestAdd/of=two", ""},
		{"return a * b", "", "all of its tests pass"},
		{"return a ? b", "", "does not build"},
		{"", "", "git apply"},
	} {
		from := "return a + b"
		if c.instead == "" {
			from = "return b + a"
		}
		patch := "Fault: it does not add\nPromise: P1\nTest: . TestAdd/of=two\n\ndiff --git a/add.go b/add.go\n" +
			"--- a/add.go\n+++ b/add.go\n@@ -3 +3 @@\n-func add(a, b int) int { " + from + " }\n" +
			"+func add(a, b int) int { " + c.instead + " }\n"
		f, err := parse(write("toy.patch", patch), patch)
		if err != nil {
			t.Fatal(err)
		}
		by, err := toy.plant(t.Context(), f)
		if by != c.by || (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: caught by %q, error %v; want %q, %q", c.instead, by, err, c.by, c.err)
		}
		if left, err := os.ReadFile(filepath.Join(toy.root, "add.go")); err != nil || string(left) != source {
			t.Errorf("%q: the tree is left as %q, %v", c.instead, left, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const patch = "\ndiff --git a/x b/x\n"
	for name, text := range map[string]string{
		"no patch":      "Fault: x\nPromise: P1\nTest: . TestX\n",
		"no fault":      "Promise: P1\nTest: . TestX\n" + patch,
		"no promise":    "Fault: x\nTest: . TestX\n" + patch,
		"no test":       "Fault: x\nPromise: P1\nTest: .\n" + patch,
		"unknown field": "Fault: x\nPromise: P1\nTest: . TestX\nAuthor: x\n" + patch,
	} {
		if f, err := parse("x.patch", text); err == nil {
			t.Errorf("%s: read as %+v", name, f)
		}
	}
}
