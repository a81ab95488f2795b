package cron

import (
	"time"

	"lessor"
)

// Interval fires every so often, counted from an anchor and not from the last run, so that ticks do not drift. Its zero
// value never fires.
type Interval struct {
	Every  time.Duration // in whole milliseconds
	Anchor lessor.Instant
}

// Next returns the first tick after an instant: the anchor and a multiple of the interval, the first one interval after
// the anchor.
func (i Interval) Next(after lessor.Instant) lessor.Instant {
	every := lessor.Instant(i.Every.Milliseconds())
	if every <= 0 {
		return 0
	}
	return i.Anchor + (max(after-i.Anchor, 0)/every+1)*every
}
