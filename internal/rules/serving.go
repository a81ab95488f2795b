package rules

import (
	"time"

	"lessor"
)

// maxGap is the longest gap of service that does not move the floor: the ttl covers it.
const maxGap = time.Second

// Serving says since when the scheduler could accept heartbeats. Its own downtime is never charged to a worker: no
// lease ends before Since plus its ttl.
type Serving struct {
	LastBeat lessor.Instant // until when it is known that a node could have accepted a heartbeat
	Since    lessor.Instant // the floor: when service began again after a gap, or the brake was pulled
	// The brake against mass expiry.
	BrakeUntil lessor.Instant // when the floor that the brake set ends; 0 = it was never pulled
	LapsedAt   lessor.Instant // when a lease last lapsed, or could not yet, since the brake was pulled; 0 = ready
	// Fence is at least every fence, and every number of a message, that was given before the store went back to an
	// older state; 0 = it never did.
	Fence int64
}

// ClockReading is one reading of a node's two clocks.
type ClockReading struct {
	Wall lessor.Instant
	Mono time.Duration // since any fixed moment of this process
}

// Serve notes that heartbeats can be accepted at now. The floor moves to now after a gap of service, and if the store's
// clock stepped against this node's monotonic clock since the reading last. A zero last is the node's first reading.
func Serve(s Serving, last, now ClockReading) Serving {
	gap := now.Wall.Sub(s.LastBeat)
	step := now.Wall.Sub(last.Wall) - (now.Mono - last.Mono)
	if gap.Abs() > maxGap || last != (ClockReading{}) && step.Abs() > maxGap {
		s.Since = now.Wall
	}
	if gap < -maxGap { // the clock stepped back: the brake's instants could be years ahead
		s.BrakeUntil, s.LapsedAt = 0, 0
	}
	s.LastBeat = now.Wall
	return s
}

// ServedFor is how long after a note of service a node may make the next that says that it served in between. After a
// longer time it begins to serve again.
const ServedFor = maxGap

// BeginToServe is Serve for the first note of a node. Such a node can serve, and has not: a node that dies at once, and
// one after it, would otherwise hide that no heartbeat was accepted for as long as this goes on. So the note either
// moves the floor, or leaves the last beat to nodes that live. It moves the floor after half of a gap already, since
// heartbeats are accepted before the next note (see stepGap).
func BeginToServe(s Serving, now lessor.Instant) Serving {
	next := Serve(s, ClockReading{}, ClockReading{Wall: now})
	if now.Sub(s.LastBeat).Abs() <= maxGap/2 {
		next.LastBeat = s.LastBeat
	} else {
		next.Since = now
	}
	return next
}

// BrakeConfig bounds mass expiry.
type BrakeConfig struct {
	SharePercent int           // the brake needs more than this share of all leases silent
	Min          int           // and at least this many
	Rate         int           // leases ended per second after the brake, until it is ready again
	TTL          time.Duration // default ttl + grace of leases
}

// brakeWorkers is how many workers must be silent for the brake: the death of one or two is no mass expiry.
const brakeWorkers = 3

// Silence counts the leases that have lapsed or have used two thirds of their ttl.
type Silence struct {
	All, Lapsed, Silent int
	workers             map[Holder]struct{}
	longest             time.Duration // the longest ttl of a silent lease: after a brake the last may lapse then
}

// Count adds one live lease row.
func (c *Silence) Count(h *Held, now lessor.Instant, s Serving) {
	c.All++
	end := Effective(h, now, s)
	if end.Sub(now) > h.TTL/3 {
		return
	}
	c.Silent++
	c.longest = max(c.longest, h.TTL)
	if now >= end {
		c.Lapsed++
	}
	if len(c.workers) < brakeWorkers {
		if c.workers == nil {
			c.workers = map[Holder]struct{}{}
		}
		c.workers[h.Holder()] = struct{}{}
	}
}

// BrakeReady reports whether the brake may be pulled: it never was, or one ttl has passed without a lapse since.
func BrakeReady(s Serving, now lessor.Instant, cfg BrakeConfig) bool {
	return s.LapsedAt == 0 || now.Sub(s.LapsedAt) >= cfg.TTL
}

// Brake decides how many lapsed leases may be ended now, and returns the serving state to keep. elapsed is the time
// since this node's last sweep; 0 = this is none. Only c.Lapsed counts unless BrakeReady. pulled reports whether this
// call pulled the brake.
func Brake(c Silence, s Serving, now lessor.Instant, elapsed time.Duration, cfg BrakeConfig) (
	next Serving, allowed int, pulled bool,
) {
	if BrakeReady(s, now, cfg) {
		s.LapsedAt = 0
	}
	if c.Lapsed == 0 {
		return s, 0, false
	}
	switch {
	case s.LapsedAt != 0 && elapsed == 0:
		return s, 1, false // the next sweep counts from the last one
	case s.LapsedAt != 0:
		elapsed = min(elapsed, now.Sub(s.LapsedAt), time.Second) // another node may have swept meanwhile
		s.LapsedAt = now
		return s, max(1, int(float64(cfg.Rate)*elapsed.Seconds())), false
	}
	if c.Silent >= cfg.Min && c.Silent*100 > c.All*cfg.SharePercent && len(c.workers) >= brakeWorkers {
		s.Since, s.BrakeUntil = now, now.Add(max(cfg.TTL, c.longest))
		s.LapsedAt = s.BrakeUntil // until then nothing can lapse, so the ttl without a lapse begins there
		return s, 0, true
	}
	return s, c.Lapsed, false
}
