package worker

import (
	"math/rand/v2"
	"time"
)

// moment is a reading of both clocks. The monotonic one stops while a machine sleeps and the wall clock can be set, so what
// is counted against a lease is whichever shows that more time went by.
type moment struct{ mono, wall time.Time }

func (w *Worker) now() moment { return moment{mono: time.Now(), wall: w.wall()} }

// wallClock is the time of day, without the monotonic reading.
func wallClock() time.Time { return time.Now().Round(0) }

func (m moment) isZero() bool { return m.mono.IsZero() }

// until returns how much time has passed between m and later.
func (m moment) until(later moment) time.Duration {
	return max(later.mono.Sub(m.mono), later.wall.Sub(m.wall))
}

// jitter returns between 80 and 100 % of d: never later than asked, and not all at once.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/5+1) }
