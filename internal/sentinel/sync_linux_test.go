package sentinel

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestReplacedFileIsSyncedBeforeAndAfterTheRename watches the system calls of a process that replaces a file. The data
// must be on the disk before the name points to it, and the name before the caller goes on: a power cut leaves the old
// file or the new one.
func TestReplacedFileIsSyncedBeforeAndAfterTheRename(t *testing.T) {
	if folder := os.Getenv("LESSOR_REPLACE_IN"); folder != "" { // the process that is watched
		root, err := os.OpenRoot(folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := replaceFile(root, "file", []byte("new")); err != nil {
			t.Fatal(err)
		}
		return
	}
	folder, trace := t.TempDir(), filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-y", "-o", trace,
		"-e", "trace=fsync,fdatasync,rename,renameat,renameat2", os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "LESSOR_REPLACE_IN="+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("strace (make test installs it): %v\n%s", err, out)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, m := range regexp.MustCompile(`(?m)(fsync|fdatasync|rename)\w*\((.*)`).FindAllSubmatch(text, -1) {
		what := " of the file"
		if regexp.MustCompile(`^\d+<` + regexp.QuoteMeta(folder) + `>\)`).Match(m[2]) {
			what = " of the folder"
		}
		calls = append(calls, string(m[1])+what)
	}
	if want := []string{"fsync of the file", "rename of the file", "fsync of the folder"}; !slices.Equal(calls, want) {
		t.Errorf("the calls are %q, want %q:\n%s", calls, want, text)
	}
}
