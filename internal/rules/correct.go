package rules

import (
	"time"

	"lessor"
)

// A clock that was ahead and is set back leaves instants behind that lie too far in the future. What is due after a delay of its own is
// then counted from now: nothing waits longer than its delay. A start time that a submitter gave is wall time, and stays.

// SteppedBack reports whether the store's clock went back against this node's monotonic clock between two readings.
func SteppedBack(last, now Tick) bool {
	return last != (Tick{}) && now.Wall.Sub(last.Wall)-(now.Mono-last.Mono) < -maxGap
}

// Ahead reports whether an instant was read on a clock that has since been set back.
func Ahead(at, now lessor.Instant) bool { return at.Sub(now) > maxGap }

// Rewait counts the wait of a job from now if it began in the future, and reports whether it did. A job that was never granted waits for
// the start time that it was given.
func Rewait(t *Turn, w *Wait, now lessor.Instant) bool {
	if t.Fence == 0 || !Ahead(t.QueuedAt, now) {
		return false
	}
	w.Until = now.Add(w.Until.Sub(t.QueuedAt))
	t.QueuedAt = now
	return true
}

// Reaim aims d anew if its next tick was chosen on a clock that has since been set back, and reports whether it was. An interval is counted
// from now. A cron expression follows the wall clock; ticks that have a row are passed over when they come (Undecided).
func Reaim(d *Definition, next func(*Definition) Ticker, now lessor.Instant) bool {
	if d.NextTick == 0 {
		return false
	}
	if every := time.Duration(d.Schedule.Seconds) * time.Second; every > 0 {
		if d.NextTick.Sub(now) <= every {
			return false
		}
		d.Anchor = now
	}
	tick := next(d)(now)
	if tick == 0 || tick >= d.NextTick {
		return false
	}
	d.aim(tick)
	return true
}

// Undecided returns the ticks of d without those that have a row already, and aims d past them.
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
		d.aim(pass(d.NextTick))
	}
	return pass
}

// Recool lets an open circuit be tried after its cooldown at the latest, and reports whether that changed it.
func (c *Circuit) Recool(d *Definition, now lessor.Instant) bool {
	if c.State != lessor.CircuitOpen || c.RetryAt.Sub(now) <= d.Cooldown {
		return false
	}
	c.OpenedAt, c.RetryAt = min(c.OpenedAt, now), now.Add(d.Cooldown)
	return true
}

// Rewatch shortens a watch that was set on a clock that may have been ahead, and reports whether it did. Whoever still watches
// the lease prolongs it before that.
func Rewatch(h *Held, now lessor.Instant) bool {
	if h.WatchUntil.Sub(now) <= h.TTL {
		return false
	}
	h.WatchUntil = now.Add(h.TTL)
	return true
}
