package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestStartOnAFullDisk: a server that was killed on a full disk starts on it, refuses changes, and accepts them
// when there is space.
func TestStartOnAFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("no file system can be mounted here, which takes root: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	running := filepath.Join(t.TempDir(), "lessor.db")
	// The setting is in the log only. To take it in, the database file would have to grow.
	update(t, openAt(t, Config{Path: running}), func(tx scheduler.Tx) error {
		return tx.SaveSetting(t.Context(), "large", make([]byte, 500_000))
	})
	killed, path, filler := killedCopy(t, running), filepath.Join(disk, "lessor.db"), filepath.Join(disk, "filler")
	for _, suffix := range []string{"", walSuffix, markSuffix} {
		copyFile(t, killed+suffix, path+suffix)
	}
	for _, name := range []string{path + ".lock", path + "-shm"} { // a killed server leaves these too
		if err := os.WriteFile(name, make([]byte, 32<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filler, make([]byte, 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v, want ENOSPC", err)
	}
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	update(t, s, func(scheduler.Tx) error { return nil }) // a start stores nothing that is stored already
	if err := commitSetting(t, s, 1); !errors.Is(err, scheduler.ErrFull) {
		t.Fatalf("a change on a full disk: %v, want ErrFull", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := commitSetting(t, s, 2); err != nil {
		t.Fatal(err)
	}
	if marked, err := readMark(path); err != nil || marked.commits != s.commits || marked.at != s.at {
		t.Errorf("the mark says %+v, %v; want %d commits up to %+v", marked, err, s.commits, s.at)
	}
}

// TestCommitThatCannotBeMarkedHasAnUnknownOutcome: on some file systems the mark cannot be overwritten when the
// disk is full. The commit is in the log by then, so its outcome is unknown to the caller, and the store continues with
// it.
func TestCommitThatCannotBeMarkedHasAnUnknownOutcome(t *testing.T) {
	s := openAt(t, Config{})
	specs := drafts(2)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	file := s.mark.file
	s.mark.file = full
	err = s.Update(t.Context(), func(tx scheduler.Tx) error { return submit(t.Context(), tx, specs) })
	if !errors.Is(err, scheduler.ErrFull) || !errors.Is(err, scheduler.ErrUnknownOutcome) {
		t.Errorf("a commit that cannot be marked: %v, want ErrFull and ErrUnknownOutcome", err)
	}
	s.mark.file = file
	var held []*rules.Held
	update(t, s, func(tx scheduler.Tx) (err error) {
		held, err = grant(t.Context(), tx, specs)
		return err
	})
	update(t, s, func(tx scheduler.Tx) error { return finish(t.Context(), tx, leaseIDs(held), completed) })
}
