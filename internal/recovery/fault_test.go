package recovery

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"lessor"
	"lessor/internal/fault"
	"lessor/internal/scheduler"
)

// TestPanicOfTheMonitorEndsNothing: the monitor reports a panic, and continues as soon as the cause is gone.
func TestPanicOfTheMonitorEndsNothing(t *testing.T) {
	faults := make(chan *fault.Fault, 100)
	cfg := settings()
	cfg.Fault = func(f *fault.Fault) { faults <- f }
	inWorld(t, cfg, func(t *testing.T, w *world) {
		c := w.command()
		c.live(time.Minute)
		err := w.monitor.inRun(w.ctx, func(context.Context) error { panic("boom") })
		if f := <-faults; err == nil || f.Place != fault.Recovery {
			t.Errorf("a scan that panicked returns %v and reports %+v", err, f)
		}
		c.live(3 * time.Minute)
		c.wantVerdict(lessor.HeartbeatFresh)
	})
}

// TestEachPassesAPanicOn: a panic of one of several concurrent calls is passed on to the goroutine of their caller.
func TestEachPassesAPanicOn(t *testing.T) {
	err := fault.Try(fault.Recovery, nil, func() error {
		return each([]int{1, 2, 3}, func(n int) error {
			if n == 2 {
				panic("boom")
			}
			return nil
		})
	})
	if err == nil {
		t.Error("a panic of one of three calls is no error")
	}
}

// unreadable is a store whose reads fail while down is set.
type unreadable struct {
	scheduler.Store
	down *atomic.Bool
}

func (s unreadable) View(ctx context.Context, fn func(scheduler.View) error) error {
	if s.down.Load() {
		return errors.New("the store is down")
	}
	return s.Store.View(ctx, fn)
}

// TestReadersDoNotDelayTheNextCheck: after a check that failed, the monitor checks again although callers keep asking
// about another job, and finds the exit record before the lease ends.
func TestReadersDoNotDelayTheNextCheck(t *testing.T) {
	var down atomic.Bool
	open := func(w *world) (scheduler.Store, error) {
		store, err := openSQLite(w)
		return unreadable{store, &down}, err
	}
	inWorldOf(t, settings(), 1, open, func(t *testing.T, w *world) {
		c, other := w.command(), w.command()
		down.Store(true)
		w.pass(10 * time.Second) // the leases are checked in this time
		down.Store(false)
		c.exit(nil)
		for range 80 {
			if _, err := w.monitor.Health(w.ctx, other.id); err != nil {
				t.Fatal(err)
			}
			w.pass(retryAfter / 2)
		}
		c.want(lessor.Completed)
	})
}
