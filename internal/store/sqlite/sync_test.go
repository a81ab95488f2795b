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
	wait, err := s.Send(t.Context(), scheduler.Sole, func(tx scheduler.Tx) error {
		return tx.SaveSetting(t.Context(), name, []byte("x"))
	})
	if err != nil {
		t.Fatal(err)
	}
	return wait
}

// slowDisk makes each sync of a store wait for an answer, until the test ends.
func slowDisk(t *testing.T, s *Store) (syncs chan chan<- error) {
	t.Helper()
	syncs = make(chan chan<- error)
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	s.syncing.data = func(*os.File) error {
		answer := make(chan error)
		select {
		case syncs <- answer:
		case <-ended:
			return nil
		}
		select {
		case err := <-answer:
			return err
		case <-ended:
			return nil
		}
	}
	return syncs
}

// hanging is a store whose disk hangs. It has sent two commits, and the caller of the first waits for its sync.
type hanging struct {
	*Store
	second  func() error        // waits for the second commit
	syncs   <-chan chan<- error // the syncs that begin
	sync    chan<- error        // ends the sync of the first commit
	answers chan error          // to the callers
}

func hang(t *testing.T) *hanging {
	t.Helper()
	h := &hanging{Store: openAt(t, Config{}), answers: make(chan error, 2)}
	h.syncs = slowDisk(t, h.Store)
	first := send(t, h.Store, "first")
	h.second = send(t, h.Store, "second")
	h.call(first)
	h.sync = h.begun(t)
	return h
}

// call starts a caller that waits for its commit.
func (h *hanging) call(wait func() error) {
	go func() { h.answers <- wait() }()
}

// begun returns the sync that a caller waits for. The caller must not be answered before it has begun.
func (h *hanging) begun(t *testing.T) (sync chan<- error) {
	t.Helper()
	select {
	case sync = <-h.syncs:
	case err := <-h.answers:
		t.Fatalf("answered before the sync: %v", err)
	}
	return sync
}

// TestCommitIsOnTheDiskBeforeItsCallersAreAnswered: the writer goes on while the disk syncs. Callers, views and Serve
// wait for the sync, and one sync is enough for all commits before it.
func TestCommitIsOnTheDiskBeforeItsCallersAreAnswered(t *testing.T) {
	s := hang(t)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := s.View(short, func(scheduler.View) error { return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a view before the sync: %v, want it to wait", err)
	}
	if _, err := s.Serve(short, false); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Serve before the sync: %v, want it to wait", err)
	}
	third := send(t, s.Store, "third")
	select {
	case err := <-s.answers:
		t.Fatalf("answered before the sync: %v", err)
	default:
	}
	s.sync <- nil
	if err := errors.Join(<-s.answers, s.second()); err != nil {
		t.Fatalf("after the sync: %v", err)
	}
	s.call(third)
	s.begun(t) <- nil // the first sync began before the third commit, which needs another
	if err := <-s.answers; err != nil {
		t.Fatal(err)
	}
	inView(t, s.Store, func(v scheduler.View) error {
		if value, err := v.Setting(t.Context(), "third"); value == nil {
			t.Errorf("the setting of a durable commit is missing: %v", err)
		}
		return nil
	})
}

// TestFailedSyncBreaksTheStore: earlier writes cannot be trusted after it, so all waiting callers are refused, and
// nothing is written any more.
func TestFailedSyncBreaksTheStore(t *testing.T) {
	s := hang(t)
	s.call(s.second)
	s.sync <- os.ErrInvalid
	for range 2 {
		select {
		case err := <-s.answers:
			if !errors.Is(err, scheduler.ErrBroken) {
				t.Errorf("a commit before the failed sync: %v, want ErrBroken", err)
			}
		case <-s.syncs:
			t.Fatal("the log was synced again after a failed sync")
		}
	}
	if err := commitSetting(t, s.Store, 3); !errors.Is(err, scheduler.ErrBroken) {
		t.Errorf("a later commit: %v, want ErrBroken", err)
	}
	if _, err := s.Serve(t.Context(), false); !errors.Is(err, scheduler.ErrBroken) {
		t.Errorf("Serve: %v, want ErrBroken", err)
	}
}

// TestKillBeforeTheSyncLosesNothing: the mark may be several commits behind the log.
func TestKillBeforeTheSyncLosesNothing(t *testing.T) {
	path := t.TempDir() + "/lessor.db"
	s := openAt(t, Config{Path: path})
	for _, name := range []string{"first", "second", "third"} {
		send(t, s, name)
	}
	killed := openAt(t, Config{Path: killedCopy(t, path)})
	inView(t, killed, func(v scheduler.View) error {
		for _, name := range []string{"first", "second", "third"} {
			if value, err := v.Setting(t.Context(), name); value == nil {
				t.Errorf("the setting %s is missing: %v", name, err)
			}
		}
		return nil
	})
}
