package rules

import (
	"time"

	"lessor"
)

// Effective returns when a lease ends, whoever asks and wherever it is shown: never before the floor (our own downtime is
// not charged), nor while a watcher holds it. A lease whose last beat lies in the future was beaten on a clock
// that has since stepped back: it is judged by the floor alone.
func Effective(h *Held, now lessor.Instant, s Serving) lessor.Instant {
	end := h.ExpiresAt
	if before(h.BeatAt, now) {
		end = 0
	}
	return max(end, s.Since.Add(h.TTL), h.WatchUntil)
}

// stepGap is how far ahead of now an instant of a lease must lie to be from before a step back that has moved the floor. A lease is
// beaten at most maxGap after the last note of service; if that is still the note from before the step, nothing lapses unless it is
// at most maxGap ahead of now. With a smaller stepGap a lease could be judged by a floor that has not moved yet, under which
// every lease that was just beaten would be over.
const stepGap = 2 * maxGap

// before reports whether an instant of a lease was read before the clock stepped back.
func before(at, now lessor.Instant) bool { return at.Sub(now) > stepGap }

// RuntimeEnd returns when a lease ends however often it is beaten; 0 = never. It is never before the floor, and counted from there if the
// lease was granted on a clock that has since stepped back.
func RuntimeEnd(h *Held, now lessor.Instant, s Serving) lessor.Instant {
	if h.MaxRuntime == 0 {
		return 0
	}
	issued := h.IssuedAt
	if before(issued, now) {
		issued = s.Since
	}
	return max(issued.Add(h.MaxRuntime), s.Since.Add(h.TTL), h.WatchUntil)
}

// Over tells how a lease that nobody ended has ended by itself at now: OutcomeExpired when its heart stopped,
// OutcomeFailed when its running time is used up, "" while it lives. If nobody could have accepted a heartbeat just
// now, nothing has lapsed.
func Over(h *Held, now lessor.Instant, s Serving) Outcome {
	if now.Sub(s.LastBeat).Abs() > maxGap {
		return ""
	}
	if end := RuntimeEnd(h, now, s); end != 0 && now >= end {
		return OutcomeFailed
	}
	if now >= Effective(h, now, s) {
		return OutcomeExpired
	}
	return ""
}

// SetRight puts a lease that was beaten on a clock which has since stepped back onto the clock of now, and reports whether it was
// one. Its end stays what Effective says; without it the lease would seem to be beaten when the clock comes to BeatAt again, and
// end a step late.
func SetRight(h *Held, now lessor.Instant, s Serving) bool {
	if !before(h.BeatAt, now) {
		return false
	}
	h.BeatAt, h.ExpiresAt = min(now, s.Since), s.Since.Add(h.TTL)
	return true
}

// NextLook returns when a lease that lives now may be over. That of one which is to be set right is now.
func NextLook(h *Held, now lessor.Instant, s Serving) lessor.Instant {
	if before(h.BeatAt, now) {
		return now
	}
	end := Effective(h, now, s)
	if r := RuntimeEnd(h, now, s); r != 0 {
		end = min(end, r)
	}
	return end
}

// Touch refuses a call on a lease that is gone, over, or another's, in this order.
func Touch(h *Held, by Hand, now lessor.Instant, s Serving) error {
	if h == nil {
		return lessor.ErrLeaseNotFound
	}
	if o := Over(h, now, s); o != "" {
		if h.CancelAt != 0 {
			o = OutcomeCancelled // as the sweep will conclude it
		}
		return &lessor.Error{Code: lessor.CodeLeaseNotFound, Detail: "the lease is over", EndedReason: string(o)}
	}
	if !h.heldBy(by) {
		return lessor.ErrWorkerMismatch
	}
	return nil
}

// Beat extends h for the worker that sent a heartbeat; ttl is its new ttl plus grace, 0 to keep the old. ExpiresAt never
// moves backwards.
func Beat(h *Held, by Hand, ttl time.Duration, now lessor.Instant, s Serving) error {
	if err := Touch(h, by, now, s); err != nil {
		return err
	}
	end := s.Since.Add(h.TTL) // a shorter ttl lowers the floor of this lease, not what it was promised before
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

// Grant makes the lease of a job that is taken from the queue. Its fence is larger than every fence of the job before, and
// still rises when the store was restored from an older copy.
func Grant(id lessor.LeaseID, t Turn, spec *Spec, worker string, ttl time.Duration, now lessor.Instant) *Held {
	t.Attempt++
	t.Steps++
	t.Kept = 0
	t.Fence = max(t.Fence+1, int64(now))
	return &Held{
		ID: id, Turn: t, Tenant: spec.Lane.Tenant, LockKey: spec.Lane.LockKey, Units: spec.Lane.Units,
		Worker: worker, TTL: ttl, MaxRuntime: spec.MaxRuntime,
		IssuedAt: now, BeatAt: now, ExpiresAt: now.Add(ttl),
	}
}

// Fenced returns a turn whose next fence is larger than all that were given before the store went back.
func Fenced(t Turn, s Serving) Turn {
	t.Fence = max(t.Fence, s.Fence)
	return t
}

// Pace returns after how long a worker should beat again: a third of the ttl, so that two beats may be lost.
func Pace(ttl time.Duration) time.Duration { return ttl / 3 }
