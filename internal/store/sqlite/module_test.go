package sqlite

import (
	"bytes"
	"encoding/json"
	"os"
	process "os/exec"
	"regexp"
	"testing"
)

// TestLibcIsTheOneThatSQLiteAsksFor: modernc.org/sqlite works only with the version of modernc.org/libc that its go.mod
// names, and `go get -u` takes a newer one in silence.
func TestLibcIsTheOneThatSQLiteAsksFor(t *testing.T) {
	out, err := process.CommandContext(t.Context(), "go", "list", "-m", "-json", "modernc.org/sqlite",
		"modernc.org/libc").Output()
	if err != nil {
		t.Skipf("go list fails: %v", err)
	}
	var sqlite, libc struct{ Version, GoMod string }
	d := json.NewDecoder(bytes.NewReader(out))
	if err := d.Decode(&sqlite); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(&libc); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(sqlite.GoMod)
	if err != nil {
		t.Fatal(err)
	}
	asks := regexp.MustCompile(`modernc.org/libc (v\S+)`).FindSubmatch(mod)
	if len(asks) != 2 || string(asks[1]) != libc.Version {
		t.Errorf("modernc.org/sqlite %s asks for libc %s, and our go.mod has %s", sqlite.Version, asks, libc.Version)
	}
}
