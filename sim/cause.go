package main

import (
	"strings"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// liveLease is a live lease as of the last commit, with its times in true time.
type liveLease struct {
	*rules.Held
	issuedAt time.Duration
	until    time.Duration // when it is over at the latest, if nobody watches it
	ttlAt    time.Duration // when it got another ttl
	sets     int           // how often the clock had been set at its last heartbeat
}

// begin notes a lease that was not there before, or that is there again after the database went back. One that was
// issued ahead of the clock is older than the last time at which the clock was set.
func (b *knowledge) begin(h *rules.Held, now lessor.Instant) *liveLease {
	t := &liveLease{Held: h, issuedAt: b.ago(h.IssuedAt, now), until: b.now + h.ExpiresAt.Sub(now), sets: b.sets}
	if h.IssuedAt > now {
		t.issuedAt = min(t.issuedAt, b.setAt)
	}
	b.live[h.ID] = t
	return t
}

// ago converts an instant of the database's clock, which says now, to true time. An instant in the future becomes now.
func (b *knowledge) ago(at, now lessor.Instant) time.Duration { return b.now - max(0, now.Sub(at)) }

// follow notes what became of a lease. A shorter ttl does not take back what the longer one promised.
func (b *knowledge) follow(t *liveLease, h *rules.Held, now lessor.Instant, s rules.Serving) {
	floor, ttl := b.ago(s.Since, now), max(t.TTL, h.TTL)
	if h.BeatAt != t.BeatAt {
		t.until, t.sets = max(t.until, floor+ttl, b.ago(h.BeatAt, now)+ttl), b.sets
	}
	left := h.TTL
	if b.sets > t.sets { // a clock that was set back may be before ExpiresAt for as long again
		left = max(left, h.ExpiresAt.Sub(h.BeatAt))
	}
	t.until = max(t.until, floor+left)
	if h.TTL != t.TTL {
		t.ttlAt = b.now
	}
	if h.WatchUntil != t.WatchUntil {
		b.watching(h.ID, 0) // until its caller has the answer
	}
	t.Held = h
}

// checkEndedInTime checks that a lease does not live on after its end (P6), as far as the server could have ended it:
// after the brake the server ends leases at a rate. The end is in true time: setting the clock excuses a
// delay of two seconds, the size below which a step does not count.
func (b *knowledge) checkEndedInTime(t *liveLease, now lessor.Instant, s rules.Serving) {
	end := max(t.until, b.now+t.WatchUntil.Sub(now))
	if t.MaxRuntime != 0 && b.setAt < t.issuedAt {
		ran := max(t.issuedAt+t.MaxRuntime, b.ago(s.Since, now)+t.TTL, t.ttlAt)
		end = min(end, max(ran, b.now+t.WatchUntil.Sub(now)))
	}
	before := end - 3*time.Second
	serves := b.floor < before && b.now-b.servedAt < time.Second
	late := b.now - end - time.Duration(1+b.sets-t.sets)*2*time.Second - b.pace.Serve - b.skew(end-t.issuedAt)
	if late > 0 && s.LapsedAt == 0 && serves && b.faults.faultAt < before {
		b.fail("P6", "lease %v is held %v too long: %+v at %v, serving %+v", t.ID, late, t.Life, now, s)
	}
}

// skew is by how much clocks that drift may differ after a time.
func (*knowledge) skew(d time.Duration) time.Duration { return 20*time.Millisecond + d/2000 }

// act is an action that a caller tried on a lease or a job.
type act struct {
	id   lessor.UUID
	what string
}

// checkEnds checks the leases that ended in this commit: each has a cause.
func (b *knowledge) checkEnds(v scheduler.View, all []*rules.Held) error {
	live := make(map[lessor.LeaseID]bool, len(all))
	for _, h := range all {
		live[h.ID] = true
	}
	for id, t := range b.live {
		if live[id] {
			continue
		}
		delete(b.live, id)
		a, _, err := v.AttemptOf(ctx, id)
		if err != nil {
			return err
		}
		if a == nil {
			b.fail("P13", "lease %v is gone, and no attempt tells how", id)
			continue
		}
		b.checkCause(t, a, v.Now())
	}
	return nil
}

// checkCause checks the end of a lease: it lapsed no sooner than it may (P5, P7), or a caller asked for its end (P1,
// P3). now is what the database's clock says.
func (b *knowledge) checkCause(t *liveLease, a *rules.Attempt, now lessor.Instant) {
	l := b.leases[t.ID]
	asked := func(id lessor.UUID, what string) {
		if !b.tried[act{id, what}] {
			b.fail("cause", "lease %v ended as %s %q, and nobody asked for that", t.ID, a.Outcome, a.Reason)
		}
	}
	switch a.Reason {
	case rules.ReasonLeaseExpired:
		if l != nil {
			b.checkNotEarly(l, b.ago(a.EndedAt, now))
		}
	case rules.ReasonMaxRuntime:
		ran := b.now - t.issuedAt
		if t.MaxRuntime == 0 || b.setAt < t.issuedAt && ran < t.MaxRuntime-b.skew(ran) {
			b.fail("P5", "lease %v was ended after %v, its maximum is %v", t.ID, ran, t.MaxRuntime)
		}
	case rules.ReasonRevoked, rules.ReasonHeartbeatStopped:
		asked(t.ID.UUID, a.Reason)
	case rules.ReasonForced:
		asked(t.Turn.Job.UUID, a.Reason)
	case "client_gone":
		if !b.plan.has(Messages) || t.RequestID != "" {
			b.fail("cause", "lease %v was given back for a worker that has not gone, or asks again", t.ID)
		}
	default:
		how, _, _ := strings.Cut(string(a.Said), " ")
		if l == nil || !b.has(l, how) {
			asked(t.ID.UUID, how)
		}
	}
}

func (*knowledge) has(l *knownLease, how string) bool {
	_, tried := l.how[how]
	return tried
}

// checkNotEarly checks that a lease that expired did so in time (P5, P7). A gap in service counts only if it had begun
// when the end was decided: a node that is paused in the transaction commits after the gap what was right before it.
func (b *knowledge) checkNotEarly(l *knownLease, decided time.Duration) {
	slack := b.skew(l.ttl)
	switch {
	case l.lost || l.until == 0:
	case b.now < l.until-slack:
		b.fail("P5", "lease %v expired %v early", l.id, l.until-b.now)
	case b.now < l.watch-b.skew(time.Minute):
		b.fail("P5", "lease %v expired %v before the end of its watch", l.id, l.watch-b.now)
	case l.grantedAt < b.floor && decided > b.gapAt+longGap && b.now < b.floor+l.least-slack && !b.gapHidden:
		b.fail("P7", "lease %v expired %v after service began again, its ttl is %v", l.id, b.now-b.floor, l.ttl)
	}
}
