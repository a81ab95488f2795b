package main

import (
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// wait is a request that a node holds until there is something for it.
type wait struct {
	worker *worker
	ask    *lessor.LeaseRequest
	since  time.Duration
}

// match is a request that waits, and a queued job that it may have.
type match struct {
	*wait
	job lessor.JobID
}

// waits notes that a node holds a request, until the returned function is called.
func (b *knowledge) waits(k *worker, r *lessor.LeaseRequest) (end func()) {
	one := &wait{k, r, b.now}
	b.waiting = append(b.waiting, one)
	return func() { b.waiting = slices.DeleteFunc(b.waiting, func(o *wait) bool { return o == one }) }
}

// checkWaits checks that no request waits beside a job which it may have (P8). Both must be there at two checks in a
// row, and no lease may have begun or ended between them: else the job was blocked meanwhile, perhaps. Faults delay
// what a node learns of others.
func (b *knowledge) checkWaits() {
	matches, moves := b.matches(), b.counts.Grants+b.counts.Ends
	for _, m := range matches {
		if slices.Contains(b.matchesBefore, m) && moves == b.movesBefore && b.noFaultFor(10*time.Second) {
			b.fail("P8", "a request of %s has waited since %v, and may have job %v", m.worker.name, m.since, m.job)
		}
	}
	b.matchesBefore, b.movesBefore = matches, moves
}

// matches returns the requests that wait, with the jobs that each may have for certain. Where the host decides how much
// is free, nothing is certain.
func (b *knowledge) matches() (found []match) {
	if len(b.waiting) == 0 || b.config.Busy == nil {
		return nil
	}
	b.read(func(v scheduler.View) error {
		usable, err := b.usable(v, v.Now())
		if err != nil {
			return err
		}
		s, err := readScene(v)
		for _, t := range b.grantable(&s, usable) {
			for _, w := range b.waiting {
				if s.allows(w, s.lanes[t.Lane]) {
					found = append(found, match{w, t.Job})
				}
			}
		}
		return err
	})
	return found
}

// scene is what decides which jobs may be granted.
type scene struct {
	queued   []rules.Turn
	held     []*rules.Held
	lanes    map[rules.LaneID]rules.Lane
	policies []rules.Policy
}

func readScene(v scheduler.View) (s scene, err error) {
	var ids []rules.LaneID
	err = v.EachQueued(ctx, func(t rules.Turn) error {
		s.queued, ids = append(s.queued, t), append(ids, t.Lane)
		return nil
	})
	if err != nil || len(s.queued) == 0 {
		return s, err
	}
	err = v.EachLease(ctx, func(h *rules.Held) error {
		s.held, ids = append(s.held, h), append(ids, h.Turn.Lane)
		return nil
	})
	if err != nil {
		return s, err
	}
	if s.lanes, err = v.LanesByID(ctx, ids); err != nil {
		return s, err
	}
	s.policies, err = v.Policies(ctx)
	return s, err
}

// grantable returns jobs without a definition that nothing blocks. There must be room for two of the largest: units may
// be kept for one that starves, and the other's turn may come before that of a smaller one.
func (b *knowledge) grantable(s *scene, usable int) (some []rules.Turn) {
	locks, free, largest := map[scheduler.Key]bool{}, usable, 0
	for _, h := range s.held {
		locks[scheduler.Key{Tenant: h.Tenant, Key: h.LockKey}] = h.LockKey != ""
		free -= h.Units
	}
	for _, t := range s.queued {
		largest = max(largest, s.lanes[t.Lane].Units)
	}
	if free < 2*largest {
		return nil
	}
	full := func(p policy) bool { return p.Paused || p.Cap != 0 && p.count(s.held, s.lanes) >= p.Cap }
	for _, t := range s.queued {
		l := s.lanes[t.Lane]
		locked := locks[scheduler.Key{Tenant: l.Tenant, Key: l.LockKey}]
		if l.Definition == "" && !locked && !slices.ContainsFunc(b.governing(l, s.policies), full) {
			some = append(some, t)
		}
	}
	return some
}

// allows reports whether a request takes jobs of a lane. A worker with a lease gets no unique job.
func (s *scene) allows(w *wait, l rules.Lane) bool {
	bound, types := w.worker.caller.Tenant, w.ask.Types
	holds := func(h *rules.Held) bool { return h.Worker == w.worker.name }
	return (bound == nil || *bound == l.Tenant) && (len(types) == 0 || slices.Contains(types, l.Type)) &&
		(w.ask.MaxUnits == nil || int64(l.Units) <= *w.ask.MaxUnits) &&
		!(l.Unique && slices.ContainsFunc(s.held, holds))
}
