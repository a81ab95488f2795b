package rules

import (
	"time"

	"lessor"
)

// Effective returns when a lease ends; every answer and decision uses it. A lease never ends before the floor, because
// the scheduler's own downtime is not charged, nor while a monitor watches it. If its last heartbeat lies in the
// future, the clock has stepped back since, and only the floor counts.
func Effective(h *Held, now lessor.Instant, s Serving) lessor.Instant {
	end := h.ExpiresAt
	if before(h.BeatAt, now) {
		end = 0
	}
	return max(end, s.Since.Add(h.TTL), h.WatchUntil)
}

// stepGap is how far ahead of now an instant of a lease must lie to stem from before a step back that has moved the
// floor. A heartbeat is accepted at most maxGap after the last note of service (Serving.LastBeat). While that note is
// from before the step, nothing lapses unless it is at most maxGap ahead of now. With a smaller stepGap a lease could
// be judged by a floor that has not moved yet, and would be over just after a heartbeat.
const stepGap = 2 * maxGap

// before reports whether an instant of a lease was read before the clock stepped back.
func before(at, now lessor.Instant) bool { return at.Sub(now) > stepGap }

// runtimeEnd returns when a lease ends in spite of heartbeats; 0 = never. It is never before the floor, and counts from
// the floor if the clock has stepped back since the grant.
func runtimeEnd(h *Held, now lessor.Instant, s Serving) lessor.Instant {
	if h.MaxRuntime == 0 {
		return 0
	}
	issued := h.IssuedAt
	if before(issued, now) {
		issued = s.Since
	}
	return max(issued.Add(h.MaxRuntime), s.Since.Add(h.TTL), h.WatchUntil)
}

// Over returns how a lease has lapsed at now: OutcomeExpired without heartbeats, OutcomeFailed after its maximum
// running time, "" while it lives. While no heartbeat could be accepted, no lease lapses.
func Over(h *Held, now lessor.Instant, s Serving) Outcome {
	if now.Sub(s.LastBeat).Abs() > maxGap {
		return ""
	}
	if end := runtimeEnd(h, now, s); end != 0 && now >= end {
		return OutcomeFailed
	}
	if now >= Effective(h, now, s) {
		return OutcomeExpired
	}
	return ""
}

// SetRight corrects a lease whose last heartbeat lies in the future because the clock stepped back, and reports whether
// it did. Its end stays what Effective says. Uncorrected, the lease would count as fresh when the clock reaches BeatAt
// again, and end late by the step.
func SetRight(h *Held, now lessor.Instant, s Serving) bool {
	if !before(h.BeatAt, now) {
		return false
	}
	h.BeatAt, h.ExpiresAt = min(now, s.Since), s.Since.Add(h.TTL)
	return true
}

// watchLook is how often a node looks at a lease that only its watch keeps. The monitor of another node may make the
// watch shorter, and that node may be gone when the watch ends.
const watchLook = time.Second

// ExpiryCheck returns when a lease that lives now may be over. A lease for SetRight is due now.
func ExpiryCheck(h *Held, now lessor.Instant, s Serving) lessor.Instant {
	if before(h.BeatAt, now) {
		return now
	}
	end := Effective(h, now, s)
	if r := runtimeEnd(h, now, s); r != 0 {
		end = min(end, r)
	}
	if end == h.WatchUntil {
		end = min(end, now.Add(watchLook))
	}
	return end
}

// Touch refuses a call about a lease that is gone, over, or held by another worker, in this order.
func Touch(h *Held, by Hand, now lessor.Instant, s Serving) error {
	if h == nil {
		return lessor.ErrLeaseNotFound
	}
	if o := Over(h, now, s); o != "" {
		if h.CancelAt != 0 {
			o = OutcomeCancelled // as the scheduler will end it
		}
		return &lessor.Error{Code: lessor.CodeLeaseNotFound, Detail: "the lease is over", EndedReason: string(o)}
	}
	if !h.heldBy(by) {
		return lessor.ErrWorkerMismatch
	}
	return nil
}

// Beat extends h for the worker that sent a heartbeat. ttl is its new ttl plus grace, 0 to keep the old. ExpiresAt
// never moves back.
func Beat(h *Held, by Hand, ttl time.Duration, now lessor.Instant, s Serving) error {
	if err := Touch(h, by, now, s); err != nil {
		return err
	}
	end := s.Since.Add(h.TTL) // a shorter ttl does not take back what was promised before
	if !before(h.BeatAt, now) {
		end = max(end, h.ExpiresAt)
	}
	if ttl != 0 {
		h.TTL = ttl
	}
	if h.FirstBeatAt == 0 {
		h.FirstBeatAt = now
	}
	end = max(end, now.Add(h.TTL))
	h.BeatAt, h.ExpiresAt = now, end
	return nil
}

// Grant makes the lease of a job from the queue. Its fence is larger than every earlier fence of the job, also after
// the store was restored from an older copy.
func Grant(id lessor.LeaseID, t Turn, spec *Spec, worker string, ttl time.Duration, now lessor.Instant) *Held {
	t.Attempt++
	t.Steps++
	t.RowRef = 0
	t.Fence = max(t.Fence+1, int64(now))
	return &Held{
		ID: id, Turn: t, Tenant: spec.Lane.Tenant, LockKey: spec.Lane.LockKey, Units: spec.Lane.Units,
		Worker: worker, MaxRuntime: spec.MaxRuntime, IssuedAt: now,
		Life: Life{TTL: ttl, BeatAt: now, ExpiresAt: now.Add(ttl)},
	}
}

// Fenced returns a turn whose next fence is larger than all that were given before the store went back.
func Fenced(t Turn, s Serving) Turn {
	t.Fence = max(t.Fence, s.Fence)
	return t
}

// Pace returns the time between heartbeats: a third of the ttl, so that two may be lost.
func Pace(ttl time.Duration) time.Duration { return ttl / 3 }
