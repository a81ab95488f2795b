package rules

import (
	"time"

	"lessor"
)

// This file corrects instants that were read on a clock that was ahead and has been set back. A delay is counted from
// now again, so that nothing waits longer than its delay. A run_at is wall time and stays.

// SteppedBack reports whether the store's clock went back against this node's monotonic clock between two readings.
func SteppedBack(last, now ClockReading) bool {
	return last != (ClockReading{}) && now.Wall.Sub(last.Wall)-(now.Mono-last.Mono) < -maxGap
}

// Ahead reports whether an instant was read on a clock that has since been set back.
func Ahead(at, now lessor.Instant) bool { return at.Sub(now) > maxGap }

// CorrectWait counts the wait of a job from now if it began in the future, and reports whether it did. A job that was
// never granted waits for its run_at, which stays.
func CorrectWait(t *Turn, w *Wait, now lessor.Instant) bool {
	if t.Fence == 0 || !Ahead(t.QueuedAt, now) {
		return false
	}
	w.Until = now.Add(w.Until.Sub(t.QueuedAt))
	t.QueuedAt = now
	return true
}

// CorrectNextTick sets the next tick of d again if it was chosen on a clock that has since been set back, and reports
// whether it did. An interval counts from now. A cron expression follows the wall clock; Undecided skips ticks that
// already have a row.
func CorrectNextTick(d *Definition, next func(*Definition) Ticker, now lessor.Instant) bool {
	if d.NextTick == 0 {
		return false
	}
	if every := time.Duration(d.Schedule.Seconds) * time.Second; every > 0 {
		if d.NextTick.Sub(now) <= every {
			return false
		}
		d.Anchor = now
	}
	ticks := next(d)
	tick := ticks(now)
	if tick == 0 || tick >= d.NextTick {
		return false
	}
	d.setNextTick(tick, ticks)
	return true
}

// Undecided returns the ticks of d without those that already have a row, and sets the next tick of d past them.
func Undecided(d *Definition, next Ticker, decided []lessor.Instant) Ticker {
	if len(decided) == 0 {
		return next
	}
	known := make(map[lessor.Instant]bool, len(decided))
	for _, at := range decided {
		known[at] = true
	}
	pass := func(after lessor.Instant) lessor.Instant {
		t := next(after)
		for known[t] {
			t = next(t)
		}
		return t
	}
	if known[d.NextTick] {
		d.setNextTick(pass(d.NextTick), pass)
	}
	return pass
}

// CorrectCooldown bounds the wait for the trial of an open circuit by its cooldown, and reports whether that changed
// it.
func (c *Circuit) CorrectCooldown(d *Definition, now lessor.Instant) bool {
	if c.State != lessor.CircuitOpen || c.RetryAt.Sub(now) <= d.Cooldown {
		return false
	}
	c.OpenedAt, c.RetryAt = min(c.OpenedAt, now), now.Add(d.Cooldown)
	return true
}

// CorrectWatch shortens a watch that may have been set on a clock that was ahead, and reports whether it did. A monitor
// that still watches the lease extends the watch in time.
func CorrectWatch(h *Held, now lessor.Instant) bool {
	if h.WatchUntil.Sub(now) <= h.TTL {
		return false
	}
	h.WatchUntil = now.Add(h.TTL)
	return true
}
