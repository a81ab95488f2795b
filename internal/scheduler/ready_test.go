package scheduler_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

func TestReadyNamesTheCause(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		for _, c := range []struct {
			kind error
			want string
		}{
			{scheduler.ErrFull, "the disk of the store is full"},
			{scheduler.ErrUnreachable, "the store is out of reach"},
			{scheduler.ErrUnknownOutcome, "the answer to a commit was lost"},
			{fmt.Errorf("no such table"), "the store failed"},
		} {
			fault := fmt.Errorf("connect to postgres://lessor:secret@db: %w", c.kind)
			f.fail.Store(&fault)
			time.Sleep(time.Second)
			err := w.Ready()
			if e := w.wantCode(err, lessor.CodeUnavailable); !strings.HasPrefix(e.Detail, c.want) ||
				strings.Contains(e.Detail, "secret") || e.RetryAfter == 0 {
				t.Errorf("%v: not ready with %q, want %q and a time to wait", c.kind, e.Detail, c.want)
			}
		}
		f.fail.Store(nil)
		time.Sleep(time.Second)
		if err := w.Ready(); err != nil {
			t.Errorf("not ready after the faults are gone: %v", err)
		}
	})
}

func TestStoreThatHangsIsNotReady(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		release := make(chan struct{})
		f.after = func() { <-release }
		go func() { _, _ = w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")}) }()
		synctest.Wait()
		if err := w.Ready(); err != nil {
			t.Errorf("not ready while a commit is on its way: %v", err)
		}
		time.Sleep(6 * time.Second)
		if e := w.wantCode(w.Ready(), lessor.CodeUnavailable); e.Detail != "the store does not answer" {
			t.Errorf("after 6 s without an answer of the store: %q", e.Detail)
		}
		close(release)
		time.Sleep(time.Second)
		if err := w.Ready(); err != nil {
			t.Errorf("not ready after the store has answered: %v", err)
		}
	})
}

func TestNotReadyBeforeTheStart(t *testing.T) {
	e, ok := errors.AsType[*lessor.Error](scheduler.New(nil, config()).Ready())
	if !ok || !strings.Contains(e.Detail, "starting") {
		t.Errorf("before the start: %v", e)
	}
}
