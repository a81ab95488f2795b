package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor/worker"
)

func TestWatchdogActsOncePerStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busy, hung worker.Heartbeat
		busy.Beat()
		hung.Beat()
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		var got []time.Duration // when it acted
		dog := worker.Watchdog{
			Heartbeats: []*worker.Heartbeat{&busy, &hung}, StallAfter: 30 * time.Second, CheckEvery: time.Second,
			Stalled: func(hb *worker.Heartbeat, silence time.Duration) {
				if hb != &hung || silence < 30*time.Second {
					t.Errorf("acted on the wrong heartbeat, or after %s", silence)
				}
				got = append(got, time.Since(began))
			},
		}
		done := make(chan error)
		go func() { done <- dog.Run(ctx) }()
		for i := range 100 {
			time.Sleep(time.Second)
			busy.Beat()
			if i == 49 { // at 50 s: the hung one moves again, and hangs again
				hung.Beat()
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]time.Duration{30 * time.Second, 80 * time.Second}, got); diff != "" {
			t.Errorf("acted at (-want +got):\n%s", diff)
		}
	})
}

func TestWatchdogThatLooksRarelySeesTwoStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		hb.Beat()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		acted := 0
		dog := worker.Watchdog{
			Heartbeats: []*worker.Heartbeat{&hb}, StallAfter: 10 * time.Second, CheckEvery: time.Minute,
			Stalled: func(*worker.Heartbeat, time.Duration) { acted++ },
		}
		time.AfterFunc(90*time.Second, hb.Beat)
		if err := dog.Run(ctx); err != nil || acted != 2 {
			t.Errorf("acted %d times, err %v; want one act a stall, two in all", acted, err)
		}
	})
}

func TestWatchdogDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		dog := worker.Watchdog{
			Heartbeats: []*worker.Heartbeat{&hb},
			Stalled:    func(*worker.Heartbeat, time.Duration) { cancel() },
		}
		if err := dog.Run(ctx); err != nil || time.Since(began) != 5*time.Minute {
			t.Errorf("a stall was seen after %s (err %v), want 5m", time.Since(began), err)
		}
	})
}

func TestWatchdogWithNothingToDoIsRefused(t *testing.T) {
	for _, dog := range []worker.Watchdog{{}, {Heartbeats: []*worker.Heartbeat{{}}}} {
		if err := dog.Run(t.Context()); err == nil {
			t.Error("ran without a heartbeat or an action")
		}
	}
}
