package scheduler_test

import (
	"testing"
	"time"

	"lessor"
)

// TestWorkerSeenOnAClockAheadIsForgotten: once the clock is corrected, a worker that was seen on the wrong clock is
// remembered for as long as any other.
func TestWorkerSeenOnAClockAheadIsForgotten(t *testing.T) {
	inSteppingWorld(t, config(), func(t *testing.T, w *world, s *stepping) {
		count := func() int {
			t.Helper()
			all, err := w.Workers(w.ctx, anybody)
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		s.offset.Store(int64(24 * time.Hour))
		time.Sleep(5 * time.Second)
		if _, denial := w.ask("worker-1", nil); denial == nil {
			t.Fatal("there is no job, and a lease was granted")
		}
		s.offset.Store(0)
		time.Sleep(4 * time.Minute)
		if n := count(); n != 1 {
			t.Errorf("4 min after it asked, %d workers are known, want 1", n)
		}
		time.Sleep(2 * time.Minute)
		if n := count(); n != 0 {
			t.Errorf("6 min after it asked, %d workers are known, want none", n)
		}
	})
}

// TestSampleCountsWhereTheClocksDiffer: its age is what counts, not how far the node's clock is from the store's.
func TestSampleCountsWhereTheClocksDiffer(t *testing.T) {
	cfg := config()
	cfg.Busy = nil
	cfg.Sample = func() (lessor.BusyInputs, error) {
		return lessor.BusyInputs{CPUPercent: 10, SampledAt: lessor.At(time.Now())}, nil
	}
	inSteppingWorld(t, cfg, func(t *testing.T, w *world, s *stepping) {
		for _, offset := range []time.Duration{0, -time.Hour, time.Hour} {
			s.offset.Store(int64(offset))
			time.Sleep(15 * time.Second)
			c, err := w.Capacity(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			age := lessor.At(s.now()).Sub(c.Inputs.SampledAt)
			if c.BusySource != lessor.BusyHost || age < 0 || age > 15*time.Second {
				t.Errorf("with the store's clock off by %v the rating is by %s, its sample %v old", offset,
					c.BusySource, age)
			}
		}
	})
}
