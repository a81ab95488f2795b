package scheduler_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/fault"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func TestPanicCostsOneBatch(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		f.refuse = func([]*rules.Spec) error { panic("boom") }
		_, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("guilty"), Payload: []byte(`{"secret": 1}`)})
		if err == nil || errors.As(err, new(*lessor.Error)) || strings.Contains(err.Error(), "goroutine") {
			t.Errorf("the caller of a call that panicked gets %v, want a fault without a stack", err)
		}
		f.refuse = nil
		w.mustBeat(g)
		if err := w.Ready(); err != nil {
			t.Errorf("not ready after one panic: %v", err)
		}
		w.submit(nil)
		w.noDrift()
		w.wantFaults(1)
	})
}

// TestThreeFaultsInAMinuteEndTheService: the node then refuses every call at once with the cause, and notes no service.
// No lease ends because of it, and a minute later the node serves again.
func TestThreeFaultsInAMinuteEndTheService(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		f.refuse = func([]*rules.Spec) error { panic("boom") }
		submit := func() error {
			_, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("guilty"), Payload: []byte(`{"secret": 1}`)})
			return err
		}
		for _, apart := range []time.Duration{0, 31 * time.Second, 31 * time.Second} { // never three in a minute
			time.Sleep(apart)
			w.mustBeat(g)
			_ = submit()
		}
		w.mustBeat(g)
		if err := w.Ready(); err != nil {
			t.Fatalf("not ready after faults that are rare: %v", err)
		}
		parked := w.parkOne(t)
		time.Sleep(time.Second)
		_ = submit()
		err := submit()
		if lessor.CodeOf(err) != lessor.CodeUnavailable || !strings.Contains(err.Error(), "3 internal faults") {
			t.Errorf("after three faults in a minute a caller gets %v, want 503 with the cause", err)
		}
		if err := <-parked; lessor.CodeOf(err) != lessor.CodeUnavailable {
			t.Errorf("a request that waited gets %v, want 503, so that its worker asks another node", err)
		}
		if err := w.Ready(); err == nil || !strings.Contains(err.Error(), "3 internal faults") {
			t.Errorf("ready says %v, want the cause", err)
		}
		f.refuse = nil
		before := f.updates.Load()
		time.Sleep(50 * time.Second)
		if n := f.updates.Load() - before; n > 0 || w.Ready() == nil {
			t.Errorf("%d transactions while the node refuses all calls, ready: %v", n, w.Ready())
		}
		time.Sleep(65 * time.Second) // more than a ttl since the last heartbeat
		w.mustBeat(g)
		w.noDrift()
		if err := w.Ready(); err != nil {
			t.Errorf("not ready again: %v", err)
		}
		w.wantFaults(4)
	})
}

// parkOne sends a request that waits, and returns the channel of its error.
func (w *world) parkOne(t *testing.T) <-chan error {
	t.Helper()
	answer := make(chan error, 1)
	go func() {
		_, _, err := w.Request(w.ctx, anybody, lessor.LeaseRequest{
			WorkerID: new("waiting"), Types: []string{"none"}, WaitMS: new(int64(30_000)),
		})
		answer <- err
	}()
	synctest.Wait()
	return answer
}

// wantFaults checks that n faults were reported, each with its stack and its call, and without the payload.
func (w *world) wantFaults(n int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) != n {
		w.t.Errorf("%d faults were reported, want %d", len(w.faults), n)
	}
	for _, f := range w.faults {
		calls := strings.Join(f.Calls, "\n")
		if f.Place != fault.Loop || !strings.Contains(string(f.Stack), "Insert") ||
			!strings.Contains(calls, "submit 1:") || !strings.Contains(calls, "guilty") ||
			strings.Contains(calls, "secret") {
			w.t.Errorf("a fault is reported as %v at %s in %q\n%s", f, f.Place, calls, f.Stack)
		}
	}
}

// TestPanicWhileAnsweringFailsOnlyItsCalls panics in the goroutine that answers the calls of a commit.
func TestPanicWhileAnsweringFailsOnlyItsCalls(t *testing.T) {
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
