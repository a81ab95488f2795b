package lessor_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestArchitectureShowsTheLayers compares the table of layers in ARCHITECTURE.md with the one in layers_test.go: each
// package is in one row, and imports only packages of its row and of those above.
func TestArchitectureShowsTheLayers(t *testing.T) {
	text := readDocument(t, "ARCHITECTURE.md")
	_, table, _ := strings.Cut(text, "| layer | packages |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]int{}
	for i, line := range strings.Split(table, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1) {
			if rows[m[1]] != 0 {
				t.Errorf("%s is in two rows", m[1])
			}
			rows[m[1]] = i
		}
	}
	for folder, l := range layers {
		if rows[folder] == 0 {
			t.Errorf("%s is in no row of the table", folder)
		}
		for _, target := range l.imports {
			if rows[target] > rows[folder] {
				t.Errorf("%s imports %s, which is in a row below", folder, target)
			}
		}
		delete(rows, folder)
	}
	for folder := range rows {
		t.Errorf("the table names %s, which is not in layers_test.go", folder)
	}
}

// TestArchitectureNamesFilesThatExist looks for every path in backquotes, at the root and below internal.
func TestArchitectureNamesFilesThatExist(t *testing.T) {
	text := readDocument(t, "ARCHITECTURE.md")
	paths := regexp.MustCompile("`([a-z][a-z/_*-]*(?:\\.go|/[a-z_*]+))`").FindAllStringSubmatch(text, -1)
	if len(paths) < 100 {
		t.Errorf("only %d paths were found", len(paths))
	}
	for _, m := range paths {
		found := slices.ContainsFunc([]string{"", "internal", "internal/scheduler"}, func(folder string) bool {
			files, err := filepath.Glob(filepath.Join(folder, m[1]))
			return err == nil && len(files) > 0
		})
		if !found {
			t.Errorf("there is no %s", m[1])
		}
	}
}

// TestDocumentsNameTestsThatExist holds ARCHITECTURE.md and the decisions to the names of tests. A name that ends with
// … is the beginning of one.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	var code strings.Builder
	for _, s := range readTree(t, os.DirFS(".")) {
		if s.isTest() {
			code.Write(s.text)
		}
	}
	files, err := filepath.Glob("docs/decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "ARCHITECTURE.md") {
		names := regexp.MustCompile(`\b((?:Test|Benchmark)[A-Z]\w+)(…?)`)
		for _, m := range names.FindAllStringSubmatch(readDocument(t, file), -1) {
			name := "func " + m[1]
			if m[2] == "" {
				name += "("
			}
			if !strings.Contains(code.String(), name) {
				t.Errorf("%s: there is no %s", file, m[1])
			}
		}
	}
}

func readDocument(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
