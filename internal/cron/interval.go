package cron

import (
	"strconv"
	"time"

	"lessor"
)

// Interval fires at multiples of a duration after an anchor, not after the last run, so that ticks do not drift. Its
// zero value never fires.
type Interval struct {
	Every  time.Duration // in whole milliseconds
	Anchor lessor.Instant
}

// Next returns the first tick after an instant. The first tick of all is one interval after the anchor.
func (i Interval) Next(after lessor.Instant) lessor.Instant {
	every := lessor.Instant(i.Every.Milliseconds())
	if every <= 0 {
		return 0
	}
	return i.Anchor + (max(after-i.Anchor, 0)/every+1)*every
}

// Jitter returns how long after a tick its job is due: 0 to most, in whole milliseconds. It follows from the definition
// and the tick alone, so that every node returns the same.
func Jitter(definition string, tick lessor.Instant, most time.Duration) time.Duration {
	if most < time.Millisecond {
		return 0
	}
	ms := hash(strconv.FormatInt(int64(tick), 10)+"\x00"+definition, uint64(most.Milliseconds()+1))
	return time.Duration(ms) * time.Millisecond
}
