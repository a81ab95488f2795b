package rules

import (
	"time"

	"lessor"
)

// maxGap is how long nobody may have served before the floor moves: a gap up to this is covered by the ttl.
const maxGap = time.Second

// Serving tells since when heartbeats could be accepted. Our own downtime is never charged to a worker: no lease ends
// before Since plus its ttl.
type Serving struct {
	LastBeat lessor.Instant // when somebody last could have accepted a heartbeat
	Since    lessor.Instant // the floor: when service began again after a gap, or the brake was pulled
	// The brake against mass expiry.
	BrakeUntil lessor.Instant // when the floor that the brake set ends; 0 = it was never pulled
	LapsedAt   lessor.Instant // when a lease last lapsed, or could not yet, since the brake was pulled; 0 = it is ready
	// Fence is as large as every fence that may have been given before the store went back to an older state; 0 = it never did.
	Fence int64
}

// Tick is one reading of a node's two clocks.
type Tick struct {
	Wall lessor.Instant
	Mono time.Duration // since any fixed moment of this process
}

// Serve notes that service is possible at now. The floor moves to now after a gap in which nobody served, and when the
// store's clock made a step against this node's monotonic clock since its reading last (a zero last is a start).
func Serve(s Serving, last, now Tick) Serving {
	gap := now.Wall.Sub(s.LastBeat)
	step := now.Wall.Sub(last.Wall) - (now.Mono - last.Mono)
	if gap.Abs() > maxGap || last != (Tick{}) && step.Abs() > maxGap {
		s.Since = now.Wall
	}
	if gap < -maxGap { // the brake's instants lie on a clock that has stepped back: they could be years ahead
		s.BrakeUntil, s.LapsedAt = 0, 0
	}
	s.LastBeat = now.Wall
	return s
}

// BrakeConfig bounds mass expiry.
type BrakeConfig struct {
	SharePercent int           // of all leases, more than which must be silent
	Min          int           // silent leases, at least
	Rate         int           // leases ended a second after the brake, until it is ready again
	TTL          time.Duration // default ttl + grace of leases
}

// brakeWorkers is how many workers must be silent for the brake: one or two that die with many leases are no mass
// expiry.
const brakeWorkers = 3

// Silence counts the leases that have lapsed or have used two thirds of their ttl.
type Silence struct {
	All, Lapsed, Silent int
	workers             map[string]struct{}
	longest             time.Duration // ttl of a silent lease: when the last of them may lapse again after a brake
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
			c.workers = map[string]struct{}{}
		}
		c.workers[h.Worker] = struct{}{}
	}
}

// BrakeReady reports whether the brake may be pulled: it was not yet, or one ttl has passed without a lapse since.
func BrakeReady(s Serving, now lessor.Instant, cfg BrakeConfig) bool {
	return s.LapsedAt == 0 || now.Sub(s.LapsedAt) >= cfg.TTL
}

// Brake decides what a sweep that found lapsed leases may do: it returns the serving state to keep, and how many
// leases may be ended now (elapsed is the time since the last sweep). Of c only Lapsed counts unless BrakeReady. pulled says that the brake was pulled by this call.
func Brake(c Silence, s Serving, now lessor.Instant, elapsed time.Duration, cfg BrakeConfig) (next Serving, allowed int, pulled bool) {
	if BrakeReady(s, now, cfg) {
		s.LapsedAt = 0
	}
	if c.Lapsed == 0 {
		return s, 0, false
	}
	if s.LapsedAt != 0 {
		s.LapsedAt = now
		return s, max(1, int(float64(cfg.Rate)*min(elapsed, time.Second).Seconds())), false
	}
	if c.Silent >= cfg.Min && c.Silent*100 > c.All*cfg.SharePercent && len(c.workers) >= brakeWorkers {
		s.Since, s.BrakeUntil = now, now.Add(max(cfg.TTL, c.longest))
		s.LapsedAt = s.BrakeUntil // until then nothing can lapse, so the ttl without a lapse begins there
		return s, 0, true
	}
	return s, c.Lapsed, false
}
