//go:build linux || darwin

package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lessor/internal/scheduler"
)

// number saves a setting: one commit.
func number(t *testing.T, s *Store, n int) error {
	t.Helper()
	return s.Update(t.Context(), func(tx scheduler.Tx) error {
		return tx.SaveSetting(t.Context(), fmt.Sprint("n", n), []byte("x"))
	})
}

// crash copies the files of a store, or of a copy, as a kill would leave them, and returns the database's name.
func crash(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	for _, suffix := range []string{"", walSuffix, markSuffix} {
		if _, err := os.Stat(path + suffix); err == nil {
			copyFile(t, path+suffix, filepath.Join(dir, "lessor.db"+suffix))
		}
	}
	return filepath.Join(dir, "lessor.db")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLostFilesStopTheStore removes, replaces and cuts the open files: nothing is acknowledged after that, and
// serving says so too.
func TestLostFilesStopTheStore(t *testing.T) {
	for _, suffix := range []string{"", walSuffix} {
		for name, lose := range map[string]func(t *testing.T, file string) error{
			"removed": func(_ *testing.T, file string) error { return os.Remove(file) },
			"moved":   func(_ *testing.T, file string) error { return os.Rename(file, file+".old") },
			"replaced": func(t *testing.T, file string) error {
				copyFile(t, file, file+".new")
				return os.Rename(file+".new", file)
			},
			"cut": func(_ *testing.T, file string) error { return os.Truncate(file, 0) },
		} {
			t.Run("lessor.db"+suffix+" "+name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "lessor.db")
				busy, idle := openAt(t, Config{Path: path}), openAt(t, Config{})
				for i, s := range []*Store{busy, idle} {
					if err := number(t, s, 0); err != nil {
						t.Fatal(err)
					}
					if err := lose(t, s.path+suffix); err != nil {
						t.Fatal(err)
					}
					if i == 1 { // it notices without a call
						_, err := s.Serve(t.Context(), false)
						if !errors.Is(err, scheduler.ErrBroken) || !strings.Contains(err.Error(), s.path+suffix) {
							t.Errorf("serving: %v, want ErrBroken that names the file", err)
						}
					}
					var err error
					for lost := time.Now(); err == nil && time.Since(lost) < time.Second; { // a busy one may be late
						err = number(t, s, 1)
					}
					for n := range 3 {
						if n > 0 {
							err = number(t, s, n+1)
						}
						if !errors.Is(err, scheduler.ErrBroken) || !strings.Contains(err.Error(), s.path+suffix) {
							t.Errorf("a commit: %v, want ErrBroken that names the file", err)
						}
					}
				}
			})
		}
	}
}

// TestDamagedLogIsRefused flips one byte in sixty places of a log, cuts it, and removes it: each start says that
// changes are missing, and leaves the files as they are.
func TestDamagedLogIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	s := openAt(t, Config{Path: path, Synchronous: "OFF"})
	const commits = 60
	for n := range commits {
		if err := number(t, s, n); err != nil {
			t.Fatal(err)
		}
	}
	whole := crash(t, path)
	openAt(t, Config{Path: whole}) // as it is, all is there
	log, err := os.ReadFile(path + walSuffix)
	if err != nil {
		t.Fatal(err)
	}
	damage := map[string][]byte{"removed": nil, "empty": {}, "cut": log[:len(log)-5000]}
	places := []int{logHeaderBytes + 8, logHeaderBytes + 16} // the salt and the checksum that a frame holds
	for i := range 60 {
		places = append(places, i*len(log)/60)
	}
	for i, at := range places {
		flipped := append([]byte{}, log...)
		flipped[at] ^= 1 << (i % 8)
		damage[fmt.Sprint("flipped at ", at)] = flipped
	}
	for name, log := range damage {
		lossy := crash(t, path)
		if log == nil {
			err = os.Remove(lossy + walSuffix)
		} else {
			err = os.WriteFile(lossy+walSuffix, log, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		refused(t, name, lossy)
		if name == "cut" {
			if left, err := os.ReadFile(lossy + walSuffix); err != nil || string(left) != string(log) {
				t.Errorf("the log was touched: %v", err)
			}
		}
	}
}

// TestMovedDatabaseIsPutBack: a start without the database leaves its log alone, so that both are whole again.
func TestMovedDatabaseIsPutBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	if err := number(t, openAt(t, Config{Path: path}), 1); err != nil {
		t.Fatal(err)
	}
	moved := crash(t, path)
	if err := os.Rename(moved, moved+".moved"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first start leaves an empty file
		refused(t, "no database", moved)
	}
	if err := os.Rename(moved+".moved", moved); err != nil {
		t.Fatal(err)
	}
	openAt(t, Config{Path: moved})
}

func refused(t *testing.T, name, path string) {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: path})
	if err == nil {
		_ = s.Close()
		t.Errorf("%s: it was opened, and changes are missing", name)
		return
	}
	text := err.Error()
	if strings.Contains(text, "\n") || !strings.Contains(text, "lessor doctor --accept-loss "+path) {
		t.Errorf("%s: the refusal is not one line that names the way out: %q", name, text)
	}
}

func TestOlderCopyIsRefusedUntilTheLossIsAccepted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	s := openAt(t, Config{Path: path})
	old := filepath.Join(t.TempDir(), "old.db")
	if err := number(t, s, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.copyInto(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	openAt(t, Config{Path: old}) // a copy alone, without a mark, is a database
	for n := range 3 {
		if err := number(t, s, n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := AcceptLoss(t.Context(), path); err == nil {
		t.Error("a loss was accepted while the database is in use")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openAt(t, Config{Path: path}) // closed in order: all is there
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	copyFile(t, old, path)
	refused(t, "an older copy", path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	refused(t, "no database", path)
	copyFile(t, old, path)
	lost, err := AcceptLoss(t.Context(), path)
	if err != nil || lost < 3 {
		t.Fatalf("accepted: %d commits, %v; want at least 3", lost, err)
	}
	after := openAt(t, Config{Path: path})
	if err := number(t, after, 1); err != nil {
		t.Fatal(err)
	}
}

func TestReadingChangesNothing(t *testing.T) {
	s := openAt(t, Config{})
	if err := number(t, s, 1); err != nil {
		t.Fatal(err)
	}
	was := s.commits
	for range 3 {
		update(t, s, func(scheduler.Tx) error { return nil })
		_ = s.Update(t.Context(), func(scheduler.Tx) error { return io.EOF })
	}
	if s.commits != was {
		t.Errorf("transactions that change nothing were numbered: %d, want %d", s.commits, was)
	}
}

// TestAnotherNameIsRefused: a hard link does not let a second server in, nor a start by a name beside which there
// is no log.
func TestAnotherNameIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	s := openAt(t, Config{Path: path})
	link := filepath.Join(filepath.Dir(path), "link.db")
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	for range 2 { // while the first is open, and after
		other, err := Open(t.Context(), Config{Path: link})
		if err == nil {
			_ = other.Close()
			t.Fatal("a hard link was opened")
		}
		text := err.Error()
		if strings.Contains(text, "\n") ||
			!strings.Contains(text, "another name") && !strings.Contains(text, "hard links") {
			t.Errorf("the refusal is not one line that says why: %q", text)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	openAt(t, Config{Path: path})
}
