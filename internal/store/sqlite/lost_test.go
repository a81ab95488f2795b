//go:build linux || darwin

package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// commitSetting saves setting n in a commit of its own.
func commitSetting(t *testing.T, s *Store, n int) error {
	t.Helper()
	return s.Update(t.Context(), func(tx scheduler.Tx) error {
		return tx.SaveSetting(t.Context(), fmt.Sprint("n", n), []byte("x"))
	})
}

// killedCopy copies the files of a database as a kill would leave them, and returns the path of the copy.
func killedCopy(t *testing.T, path string) string {
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

// TestLostFilesStopTheStore removes, moves, replaces and cuts the open files. After that the store acknowledges
// nothing, and Serve fails too.
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
					if err := commitSetting(t, s, 0); err != nil {
						t.Fatal(err)
					}
					if err := lose(t, s.path+suffix); err != nil {
						t.Fatal(err)
					}
					if i == 1 { // the idle store notices the loss without a commit
						_, err := s.Serve(t.Context(), false)
						if !errors.Is(err, scheduler.ErrBroken) || !strings.Contains(err.Error(), s.path+suffix) {
							t.Errorf("serving: %v, want ErrBroken with the name of the file", err)
						}
					}
					var err error
					for lost := time.Now(); err == nil && time.Since(lost) < time.Second; { // it may notice late
						err = commitSetting(t, s, 1)
					}
					for n := range 3 {
						if n > 0 {
							err = commitSetting(t, s, n+1)
						}
						if !errors.Is(err, scheduler.ErrBroken) || !strings.Contains(err.Error(), s.path+suffix) {
							t.Errorf("a commit: %v, want ErrBroken with the name of the file", err)
						}
					}
				}
			})
		}
	}
}

// TestDamagedLogIsRefused flips one bit in each of sixty places of a log, cuts it, and removes it. Each start is
// refused, because changes are missing, and leaves the files as they are.
func TestDamagedLogIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	s := openAt(t, Config{Path: path, Synchronous: "OFF"})
	const commits = 60
	for n := range commits {
		if err := commitSetting(t, s, n); err != nil {
			t.Fatal(err)
		}
	}
	openAt(t, Config{Path: killedCopy(t, path)}) // the undamaged log is accepted
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
		lossy := killedCopy(t, path)
		if log == nil {
			err = os.Remove(lossy + walSuffix)
		} else {
			err = os.WriteFile(lossy+walSuffix, log, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		checkRefused(t, name, lossy)
		left, err := os.ReadFile(lossy + walSuffix)
		if !bytes.Equal(left, log) || (err == nil) != (log != nil) {
			t.Errorf("%s: the refused start left %d bytes of the log, want its %d unchanged: %v", name, len(left),
				len(log), err)
		}
	}
}

// TestMovedDatabaseCanBePutBack: a start without the database does not change its log, so nothing is lost when the
// database is put back.
func TestMovedDatabaseCanBePutBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	if err := commitSetting(t, openAt(t, Config{Path: path}), 1); err != nil {
		t.Fatal(err)
	}
	moved := killedCopy(t, path)
	if err := os.Rename(moved, moved+".moved"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start finds an empty file, which the first has made
		checkRefused(t, "no database", moved)
	}
	if err := os.Rename(moved+".moved", moved); err != nil {
		t.Fatal(err)
	}
	openAt(t, Config{Path: moved})
}

// checkRefused fails the test unless a start is refused with one line that names the command that accepts the loss.
func checkRefused(t *testing.T, name, path string) {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: path})
	if err == nil {
		_ = s.Close()
		t.Errorf("%s: the database was opened, and changes are missing", name)
		return
	}
	text := err.Error()
	if strings.Contains(text, "\n") || !strings.Contains(text, "lessor doctor --accept-loss "+path) {
		t.Errorf("%s: got the error %q, want one line with the command that accepts the loss", name, text)
	}
}

// TestBackupBesideAnotherLogIsRefused restores a backup, and leaves the log that a killed server wrote. SQLite would
// write that log over the backup. Once the log is removed, the backup is opened, and its own log is accepted.
func TestBackupBesideAnotherLogIsRefused(t *testing.T) {
	const before = 100
	s := openAt(t, Config{Synchronous: "OFF"})
	commits := func(s *Store, from, to int) {
		for n := from; n < to; n++ {
			if err := commitSetting(t, s, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	commits(s, 0, before)
	var backup bytes.Buffer
	if err := s.Backup(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	commits(s, before, 2*before)
	for _, marked := range []bool{true, false} { // people leave the mark, or remove it
		path := killedCopy(t, s.path)
		err := os.WriteFile(path, backup.Bytes(), 0o600)
		if err == nil && !marked {
			err = os.Remove(path + markSuffix)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, opened := Open(t.Context(), Config{Path: path})
		_, accepted := AcceptLoss(t.Context(), path)
		for verb, err := range map[string]error{"start": opened, "accept the loss": accepted} {
			if err == nil || !strings.Contains(err.Error(), "remove "+path+walSuffix) {
				t.Errorf("%s, with a mark: %v: got the error %v, want that the log must be removed", verb, marked, err)
			}
		}
		if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, backup.Bytes()) {
			t.Errorf("the refused start has changed the backup: %v", err)
		}
		if err := errors.Join(os.Remove(path+walSuffix), os.RemoveAll(path+markSuffix)); err != nil {
			t.Fatal(err)
		}
		commits(openAt(t, Config{Path: path, Synchronous: "OFF"}), before, before+1)
		checkOpens(t, "restored and killed", killedCopy(t, path), before+1)
	}
}

func TestOlderCopyIsRefusedUntilTheLossIsAccepted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	s := openAt(t, Config{Path: path})
	old := filepath.Join(t.TempDir(), "old.db")
	if err := commitSetting(t, s, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.copyInto(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	openAt(t, Config{Path: old}) // a backup has no mark and is accepted
	for n := range 3 {
		if err := commitSetting(t, s, n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := AcceptLoss(t.Context(), path); err == nil {
		t.Error("a loss was accepted while the database is in use, want an error")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openAt(t, Config{Path: path}) // nothing is missing after Close
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	copyFile(t, old, path)
	checkRefused(t, "an older copy", path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, "no database", path)
	copyFile(t, old, path)
	lost, err := AcceptLoss(t.Context(), path)
	if err != nil || lost < 3 {
		t.Fatalf("accepted: %d commits, %v; want at least 3", lost, err)
	}
	after := openAt(t, Config{Path: path})
	if err := commitSetting(t, after, 1); err != nil {
		t.Fatal(err)
	}
}

func TestTransactionWithoutChangesIsNotNumbered(t *testing.T) {
	s := openAt(t, Config{})
	if err := commitSetting(t, s, 1); err != nil {
		t.Fatal(err)
	}
	was := s.commits
	for range 3 {
		update(t, s, func(scheduler.Tx) error { return nil })
		_ = s.Update(t.Context(), func(scheduler.Tx) error { return io.EOF })
	}
	if s.commits != was {
		t.Errorf("%d commits after transactions that changed nothing, want %d as before", s.commits, was)
	}
}

// TestHardLinkIsRefused: a database that has a second name is not opened by that name, neither while a server uses it
// nor after. Its log is beside the first name only.
func TestHardLinkIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lessor.db")
	s := openAt(t, Config{Path: path})
	link := filepath.Join(filepath.Dir(path), "link.db")
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	for range 2 { // while the first store is open, and after Close
		other, err := Open(t.Context(), Config{Path: link})
		if err == nil {
			_ = other.Close()
			t.Fatal("a hard link was opened, want an error")
		}
		text := err.Error()
		if strings.Contains(text, "\n") ||
			!strings.Contains(text, "another name") && !strings.Contains(text, "hard links") {
			t.Errorf("got the error %q, want one line about another name or hard links", text)
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

// TestFencesPassAClockThatWasSetBack: a job got a fence while the clock was ahead, and the store may have lost others.
func TestFencesPassAClockThatWasSetBack(t *testing.T) {
	for name, end := range map[string]rules.End{"lease": {}, "done": completed, "delayed": failed, "queue": released} {
		s := openAt(t, Config{Now: func() time.Time { return time.Now().Add(time.Hour) }})
		held := leased(t, s, 1)
		if name != "lease" {
			update(t, s, func(tx scheduler.Tx) error { return finish(t.Context(), tx, leaseIDs(held), end) })
		}
		inView(t, crashed(t, s), func(v scheduler.View) error {
			if floor := v.Serving().Fence; floor <= held[0].Turn.Fence {
				t.Errorf("%s: the floor of fences is %d, want one above %d", name, floor, held[0].Turn.Fence)
			}
			return nil
		})
	}
}
