package worker

import (
	"context"
	"errors"
	"time"
)

// Defaults of a Watchdog: a stall is noticed at most one check after it is one.
const (
	DefaultStallAfter = 5 * time.Minute
	DefaultCheckEvery = 10 * time.Second
)

// Watchdog looks at heartbeats and acts when one falls silent. Losing the lease is what moves stalled work elsewhere; a
// watchdog is for the worker itself: to cancel the work, to dump its goroutines, or to end a process that cannot be helped.
type Watchdog struct {
	// Heartbeats are watched; at least one.
	Heartbeats []*Heartbeat
	// StallAfter is the silence that is a stall. Zero means DefaultStallAfter.
	StallAfter time.Duration
	// CheckEvery is the time between two looks. Zero means DefaultCheckEvery.
	CheckEvery time.Duration
	// Stalled is called once a stall, in Run's goroutine, with how long the silence has lasted. After a beat the next silence
	// is another stall.
	Stalled func(hb *Heartbeat, silence time.Duration)
}

// Run watches until ctx is done.
func (w *Watchdog) Run(ctx context.Context) error {
	if len(w.Heartbeats) == 0 || w.Stalled == nil {
		return errors.New("a watchdog needs a heartbeat and something to do")
	}
	stallAfter, checkEvery := w.StallAfter, w.CheckEvery
	if stallAfter <= 0 {
		stallAfter = DefaultStallAfter
	}
	if checkEvery <= 0 {
		checkEvery = DefaultCheckEvery
	}
	told := make([]time.Duration, len(w.Heartbeats)) // the silence last seen, zero if it was no stall
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		for i, hb := range w.Heartbeats {
			silence := hb.Elapsed()
			if silence < stallAfter {
				told[i] = 0
				continue
			}
			before := told[i]
			told[i] = silence
			if before == 0 || silence < before { // shorter than at the last look: it has beaten since
				w.Stalled(hb, silence)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
