package worker

import (
	"context"
	"errors"
	"time"
)

// The defaults of a Watchdog.
const (
	DefaultStallAfter = 5 * time.Minute
	DefaultCheckEvery = 10 * time.Second
)

// Watchdog checks heartbeats and acts when one falls silent. Stalled work moves to another worker because its lease
// is lost; a watchdog is for the stalled process itself: it can cancel the work, dump goroutines, or end the process.
type Watchdog struct {
	// Heartbeats are the heartbeats to watch, at least one.
	Heartbeats []*Heartbeat
	// StallAfter is the silence that counts as a stall. The default is DefaultStallAfter.
	StallAfter time.Duration
	// CheckEvery is the time between two checks. The default is DefaultCheckEvery.
	CheckEvery time.Duration
	// Stalled is called once per stall, in the goroutine of Run, with the length of the silence so far. A beat ends
	// the stall.
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
	seen := make([]time.Duration, len(w.Heartbeats)) // the silence at the last check, zero if it was no stall
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		for i, hb := range w.Heartbeats {
			silence := hb.Elapsed()
			if silence < stallAfter {
				seen[i] = 0
				continue
			}
			before := seen[i]
			seen[i] = silence
			if before == 0 || silence < before { // a shorter silence than before: there was a beat since
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
