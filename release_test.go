package lessor

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReleasedMigrationsAreNeverEdited holds the migrations to testdata/releases: a database that has run a migration
// never runs it again, so an edit would give old and new databases different schemas. Numbers are given once.
func TestReleasedMigrationsAreNeverEdited(t *testing.T) {
	releases, err := os.ReadFile("testdata/releases")
	if err != nil {
		t.Fatal(err)
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]string{}
	files, err := filepath.Glob("internal/store/*/migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("migrations: %v, %v", files, err)
	}
	for _, file := range files {
		number, _, _ := strings.Cut(file, "_")
		if numbers[number] != "" {
			t.Errorf("%s and %s have the same number", numbers[number], file)
		}
		numbers[number] = file
	}
	for line := range strings.Lines(string(releases)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) != 3 {
			t.Fatalf("testdata/releases: %q is not a release, a file and a checksum", line)
		}
		text, err := os.ReadFile(fields[1])
		if sum := fmt.Sprintf("%x", sha256.Sum256(text)); err != nil || sum != fields[2] {
			t.Errorf("%s is not what %s released (%v): undo the edit, and write a new migration", fields[1], fields[0],
				err)
		}
		if heading := "## [" + strings.TrimPrefix(fields[0], "v") + "]"; !strings.Contains(string(changelog), heading) {
			t.Errorf("CHANGELOG.md has no section %s", heading)
		}
	}
}
