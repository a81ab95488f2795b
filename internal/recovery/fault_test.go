package recovery

import (
	"context"
	"testing"
	"time"

	"lessor"
	"lessor/internal/fault"
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
