//go:build darwin || linux

package sqlite

import (
	"errors"
	"os/signal"
	"syscall"
	"testing"

	"lessor/internal/scheduler"
)

// TestIOErrorStopsAllWrites makes the kernel refuse a write. The store acknowledges nothing after that, even if the
// next write would succeed: it cannot know what a failed write or fsync left on the disk.
func TestIOErrorStopsAllWrites(t *testing.T) {
	s := openAt(t, Config{})
	held := leased(t, s, 3)
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	small := limit
	small.Cur = 64 << 10 // bytes per file, the WAL included
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	err := s.Update(t.Context(), func(tx scheduler.Tx) error { return submit(t.Context(), tx, drafts(5, large)) })
	if e := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); e != nil {
		t.Fatal(e)
	}
	if !errors.Is(err, scheduler.ErrBroken) {
		t.Fatalf("the write that the kernel refused: %v, want ErrBroken", err)
	}
	err = s.Update(t.Context(), func(tx scheduler.Tx) error { return beat(t.Context(), tx, leaseIDs(held)) })
	if !errors.Is(err, scheduler.ErrBroken) {
		t.Errorf("a write after the refused one: %v, want ErrBroken", err)
	}
	if _, err := s.Serve(t.Context(), false); !errors.Is(err, scheduler.ErrBroken) {
		t.Errorf("serving after the refused write: %v, want ErrBroken", err)
	}
	inView(t, s, func(v scheduler.View) error { // acknowledged changes can still be read
		got, err := v.LeaseList(t.Context(), scheduler.LeaseQuery{Limit: 10})
		if len(got) != 3 {
			t.Errorf("%d leases, want 3", len(got))
		}
		return err
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openAt(t, Config{Path: s.path}) // SQLite has moved the log into the database, and the mark says so
}
