package config

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocsDescribeEveryKey compares docs/configuration.md with the table of keys.
func TestDocsDescribeEveryKey(t *testing.T) {
	raw, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_.]+)` \\|.*$").FindAllStringSubmatch(string(raw), -1) {
		rows[m[1]] = m[0]
	}
	c := Default().WithDefaults()
	for _, k := range Keys() {
		row, ok := rows[k.Name]
		if !ok {
			t.Errorf("%s has no row", k.Name)
			continue
		}
		delete(rows, k.Name)
		def := "`" + strings.ReplaceAll(k.value(&c), ",", ", ") + "`"
		if k.value(&c) == "" {
			def = "empty"
		}
		for _, want := range []string{"| " + def + " |", "| " + k.Allowed + " |", "| `" + k.Env() + "` |"} {
			if !strings.Contains(row, want) {
				t.Errorf("the row of %s lacks %q:\n%s", k.Name, want, row)
			}
		}
	}
	for name := range rows {
		t.Errorf("there is no key %s, but docs/configuration.md says so", name)
	}
}
