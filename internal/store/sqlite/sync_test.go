//go:build linux || darwin

package sqlite

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"lessor/internal/scheduler"
)

// send sends a commit that stores a setting.
func send(t *testing.T, s *Store, name string) (wait func() error) {
	t.Helper()
	wait, err := s.Send(t.Context(), true, func(tx scheduler.Tx) error {
		return tx.SaveSetting(t.Context(), name, []byte("x"))
	})
	if err != nil {
		t.Fatal(err)
	}
	return wait
}

// slowDisk has each sync of a store wait for an answer.
func slowDisk(s *Store) (syncs chan chan<- error) {
	syncs = make(chan chan<- error)
	s.syncing.data = func(*os.File) error {
		answer := make(chan error)
		syncs <- answer
		return <-answer
	}
	return syncs
}

// begun returns the sync that a caller waits for. The caller must not be answered before it has begun.
func begun(t *testing.T, syncs <-chan chan<- error, answers <-chan error) (answer chan<- error) {
	t.Helper()
	select {
	case answer = <-syncs:
	case err := <-answers:
		t.Fatalf("answered before the sync: %v", err)
	}
	return answer
}

// TestCommitIsOnTheDiskBeforeItsCallersAreAnswered: the writer goes on while the disk syncs. A caller, a view and the
// note of service wait for the sync, and one sync is enough for all commits before it.
func TestCommitIsOnTheDiskBeforeItsCallersAreAnswered(t *testing.T) {
	s := openAt(t, Config{})
	syncs := slowDisk(s)
	first, second := send(t, s, "first"), send(t, s, "second")
	answers := make(chan error, 1)
	go func() { answers <- first() }()
	sync := begun(t, syncs, answers)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := s.View(short, func(scheduler.View) error { return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a view of what is not on the disk: %v, want it to wait", err)
	}
	if _, err := s.Serve(short, false); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("service is noted while the disk hangs: %v, want it to wait", err)
	}
	third := send(t, s, "third")
	select {
	case err := <-answers:
		t.Fatalf("answered before the sync: %v", err)
	default:
	}
	sync <- nil
	if err := errors.Join(<-answers, second()); err != nil {
		t.Fatalf("after the sync: %v", err)
	}
	go func() { answers <- third() }()
	begun(t, syncs, answers) <- nil // the first one began before the third commit
	if err := <-answers; err != nil {
		t.Fatal(err)
	}
	inView(t, s, func(v scheduler.View) error {
		if value, err := v.Setting(t.Context(), "third"); value == nil {
			t.Errorf("a durable commit cannot be read: %v", err)
		}
		return nil
	})
}

// TestFailedSyncBreaksTheStore: what was written before it cannot be trusted, so all who wait are refused, and nothing
// is written after it.
func TestFailedSyncBreaksTheStore(t *testing.T) {
	s := openAt(t, Config{})
	syncs := slowDisk(s)
	first, second := send(t, s, "first"), send(t, s, "second")
	answers := make(chan error, 2)
	go func() { answers <- first() }()
	sync := begun(t, syncs, answers)
	go func() { answers <- second() }()
	sync <- os.ErrInvalid
	for range 2 {
		if err := <-answers; !errors.Is(err, scheduler.ErrBroken) {
			t.Errorf("answered %v after a failed sync, want ErrBroken", err)
		}
	}
	if err := number(t, s, 3); !errors.Is(err, scheduler.ErrBroken) {
		t.Errorf("a later commit: %v, want ErrBroken", err)
	}
	if _, err := s.Serve(t.Context(), false); !errors.Is(err, scheduler.ErrBroken) {
		t.Errorf("service: %v, want ErrBroken", err)
	}
}

// TestKillBeforeTheSyncLosesNothing: the mark may be several commits behind the log.
func TestKillBeforeTheSyncLosesNothing(t *testing.T) {
	path := t.TempDir() + "/lessor.db"
	s := openAt(t, Config{Path: path})
	for _, name := range []string{"first", "second", "third"} {
		send(t, s, name)
	}
	killed := openAt(t, Config{Path: crash(t, path)})
	inView(t, killed, func(v scheduler.View) error {
		for _, name := range []string{"first", "second", "third"} {
			if value, err := v.Setting(t.Context(), name); value == nil {
				t.Errorf("%s is missing: %v", name, err)
			}
		}
		return nil
	})
}
