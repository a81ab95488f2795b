package scheduler_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func TestPanicCostsOneBatch(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		f.refuse = func([]*rules.Spec) error { panic("boom") }
		_, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")})
		if err == nil || errors.As(err, new(*lessor.Error)) || strings.Contains(err.Error(), "goroutine") {
			t.Errorf("the caller of a call that panicked is told %v, want a fault without a stack", err)
		}
		f.refuse = nil
		w.mustBeat(g)
		if err := w.Ready(); err != nil {
			t.Errorf("not ready after one panic: %v", err)
		}
		w.submit(nil)
		w.noDrift()
		if n := w.stacks(); n != 1 {
			t.Errorf("the stack was told %d times, want once", n)
		}
	})
}

// TestPanicsInARow: for as long as every turn panics the node says that it is not ready, does not spin, and no lease
// ends.
func TestPanicsInARow(t *testing.T) {
	cfg := config()
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		w.submit(func(s *lessor.Submission) { s.RunAt = new(now().Add(time.Second).String()) })
		var on atomic.Bool
		on.Store(true)
		f.due = func() {
			if on.Load() {
				panic("boom")
			}
		}
		time.Sleep(5 * time.Second)
		before := f.updates.Load()
		time.Sleep(2 * cfg.TTL)
		if n := f.updates.Load() - before; n > 70 {
			t.Errorf("%d transactions in 120 s that all panic, want one in 2 s", n)
		}
		if w.Ready() == nil {
			t.Error("ready, although every turn panics")
		}
		if n := w.stacks(); n != 1 {
			t.Errorf("the stack was told %d times, want once", n)
		}
		on.Store(false)
		time.Sleep(5 * time.Second)
		if err := w.Ready(); err != nil {
			t.Errorf("not ready again: %v", err)
		}
		w.mustBeat(g)
		w.noDrift()
	})
}

// stacks counts the commits that failed with a stack.
func (w *world) stacks() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.stats {
		if s.Err != nil && strings.Contains(s.Err.Error(), "goroutine") {
			n++
		}
	}
	return n
}

// TestPanicWhileAnswering: behind a commit that was sent, another goroutine answers.
func TestPanicWhileAnswering(t *testing.T) {
	var on atomic.Bool
	cfg := config()
	cfg.Observe = func(s scheduler.Stats) {
		if s.Submitted > 0 && s.Err == nil && on.CompareAndSwap(true, false) {
			panic("boom")
		}
	}
	w := node(t, pool.Database(t), cfg, nil, (*scheduler.Scheduler).ActAsSoleNode)
	w.submit(nil)
	on.Store(true)
	if _, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")}); err == nil {
		t.Error("answered as if nothing had happened")
	}
	w.submit(nil)
	w.noDrift()
}
