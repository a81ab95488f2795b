package lessor_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestArchitectureShowsTheLayers compares the table of layers in ARCHITECTURE.md with the one in layers_test.go: each
// package is in one row, and imports only packages of its row and of those above.
func TestArchitectureShowsTheLayers(t *testing.T) {
	raw, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(raw), "| layer | packages |")
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
