package sqlite

import (
	"bytes"
	"encoding/json"
	"os"
	process "os/exec"
	"regexp"
	"testing"
)

// TestLibcIsTheOneThatSQLiteAsksFor: the two are translated from C together, and another version of modernc.org/libc is
// known to break modernc.org/sqlite. `go get -u` changes it silently.
func TestLibcIsTheOneThatSQLiteAsksFor(t *testing.T) {
	out, err := process.CommandContext(t.Context(), "go", "list", "-m", "-json", "modernc.org/sqlite",
		"modernc.org/libc").Output()
	if err != nil {
		t.Skipf("the go command cannot say: %v", err)
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
		t.Errorf("modernc.org/sqlite %s asks for libc %s, and go.mod has %s", sqlite.Version, asks, libc.Version)
	}
}
