package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/lanes"
	"lessor/internal/rules"
)

// round is one distribution of jobs to all requests of a pass.
type round struct {
	p      *pass
	denied map[kind]*lessor.Denial // kinds for which this round has nothing, so that equal requests need not look again
	taken  []taken
	got    map[rules.Holder]int // how many of these each worker gets
	shown  []*requestCall       // that get again what they were granted before
	again  map[*requestCall][]*rules.Held
	// undecided are repeated requests whose lease has lapsed and was not ended yet: they ask again, or wait, until it
	// is.
	undecided map[*requestCall]bool
	firsts    map[RequestRef]*requestCall // the first of each repeatable request in this round
	twins     map[*requestCall]*requestCall
	checked   int                       // payloads
	rejected  int                       // of these
	trial     map[string]*rules.Circuit // open circuits of which one job may be tried
	capacity  *lessor.Capacity          // see capacityNow
}

// kind is a filter and whether unique jobs are skipped.
type kind struct {
	filter string
	holder bool
}

// grant grants jobs: first to the parked requests that recent changes may concern, then to new requests, each in the
// order of arrival.
func (p *pass) grant(ctx context.Context, fresh []*requestCall) error {
	p.l.parked.tried = nil
	if !p.l.wakeParked() && len(fresh) == 0 {
		return nil
	}
	if err := p.gate(ctx); err != nil {
		return err
	}
	r := &round{
		p: p, denied: map[kind]*lessor.Denial{}, got: make(map[rules.Holder]int, len(fresh)),
		again: map[*requestCall][]*rules.Held{}, undecided: map[*requestCall]bool{},
		firsts: map[RequestRef]*requestCall{}, twins: map[*requestCall]*requestCall{},
	}
	if err := r.openTrials(ctx); err != nil {
		return err
	}
	if err := r.findRepeats(ctx, fresh); err != nil {
		return err
	}
	p.l.wakeParked() // by what other nodes did, too
	if err := r.retry(ctx); err != nil {
		return err
	}
	for _, c := range fresh {
		c.until, c.ends = p.now.Add(c.ask.Wait), p.l.now().Add(c.ask.Wait)
		p.l.workers.asked(&c.caller, &c.ask, c.kind, p.now)
		if err := r.serve(ctx, c, false); err != nil {
			return err
		}
	}
	if err := r.lease(ctx); err != nil {
		return err
	}
	return r.answerRequests(ctx, fresh)
}

// findRepeats finds what repeated requests were granted before.
func (r *round) findRepeats(ctx context.Context, calls []*requestCall) error {
	var refs []RequestRef
	for _, c := range calls {
		if c.ask.RequestID != "" {
			refs = append(refs, refOf(c))
		}
	}
	found, err := r.p.tx.Requested(ctx, refs)
	if err != nil {
		return err
	}
	for _, c := range calls {
		for _, h := range found[refOf(c)] {
			switch {
			case !c.caller.sees(h.Tenant):
			case rules.Over(h, r.p.now, r.p.serving) == "":
				r.again[c] = append(r.again[c], h)
			default:
				r.p.l.fold.CheckNow(h.ID, r.p.now)
				r.undecided[c] = true
			}
		}
	}
	return nil
}

func refOf(c *requestCall) RequestRef {
	return RequestRef{Holder: c.holder(), RequestID: c.ask.RequestID}
}

// serve takes the jobs of one request from the queue, or denies the request.
func (r *round) serve(ctx context.Context, c *requestCall, parked bool) error {
	if c.abandoned() {
		return nil
	}
	c.grants, c.got, c.left = nil, 0, c.ask.MaxUnits
	if c.ask.RequestID != "" {
		if parked {
			if err := r.findRepeats(ctx, []*requestCall{c}); err != nil {
				return err
			}
		}
		if r.again[c] != nil {
			r.shown = append(r.shown, c)
			return nil
		}
		if r.undecided[c] {
			c.denial = rules.NoneLeft(r.p.now, r.p.now)
			return nil
		}
		if first := r.firsts[refOf(c)]; first != nil {
			r.twins[c] = first
			return nil
		}
		r.firsts[refOf(c)] = c
	}
	r.fill(c)
	return nil
}

// fill takes up to as many jobs as c asks for, each counted before the next is chosen.
func (r *round) fill(c *requestCall) {
	f := r.p.l.fold
	for c.wantsMore() {
		k := kind{c.kind, r.holds(c)}
		denial := r.denied[k]
		if denial == nil || c.left != c.ask.MaxUnits {
			choice := r.choose(c, c.left, k.holder)
			if denial = choice.Denial; denial == nil {
				r.taken = append(r.taken, taken{call: c, turn: f.Index.Take(choice.Pick)})
				r.closeTrial(choice.Pick.Lane)
				r.countTaken(c, 1)
				if c.ask.MaxUnits > 0 {
					c.left -= choice.Pick.Lane.Units
				}
				continue
			}
			if c.left == c.ask.MaxUnits {
				r.denied[k] = denial
			}
		}
		if c.got == 0 {
			c.denial = denial
		}
		return
	}
}

// wantsMore reports whether a request may be given another job.
func (c *requestCall) wantsMore() bool {
	return c.got < c.ask.MaxLeases && (c.ask.MaxUnits == 0 || c.left > 0)
}

// holds reports whether unique jobs are skipped for a request because its worker holds a lease. As long as there are no
// unique jobs, it does not matter what a worker holds.
func (r *round) holds(c *requestCall) bool {
	f := r.p.l.fold
	return f.Index.HasUnique() && (f.Holds(c.holder()).Leases > 0 || r.got[c.holder()] > 0)
}

// countTaken counts n more jobs that are taken for a request.
func (r *round) countTaken(c *requestCall, n int) {
	c.got += n
	if r.p.l.fold.Index.HasUnique() {
		r.got[c.holder()] += n
	}
}

// choose asks for the job whose turn it is for c, and notes which job starves, and that c asks for it.
func (r *round) choose(c *requestCall, maxUnits int, holder bool) lanes.Choice {
	l, now := r.p.l, r.p.now
	choice, terms := r.turnFor(c, maxUnits, holder)
	if s := &l.starving; s.since != 0 && c.filter.Takes(&s.of) {
		s.askedAt = now
	}
	if choice.Found && terms.Reserved == nil {
		l.forgetStarving(now, terms.Capacity)
	}
	if choice.Starves {
		l.starve(&choice.First, now)
	}
	return choice
}

// turnFor finds the job whose turn it is for c, and under which terms.
func (r *round) turnFor(c *requestCall, maxUnits int, holder bool) (lanes.Choice, lanes.Terms) {
	l, now := r.p.l, r.p.now
	c.filter.MaxUnits, c.filter.SkipUnique = maxUnits, holder
	terms := lanes.Terms{
		Now: now, NextChange: l.nextChange(&c.caller), Capacity: r.capacityNow(), Draining: l.settings.Draining,
		Backfill: l.cfg.Backfill,
	}
	terms.Reserved = l.reservedFor(now, terms.Capacity)
	return l.fold.Index.Choose(&c.filter, &terms), terms
}

// capacityNow is the capacity of the loop. In a round only the leased units change.
func (r *round) capacityNow() lessor.Capacity {
	if r.capacity == nil {
		r.capacity = new(r.p.l.capacity(r.p.now))
	}
	leased(r.capacity, r.p.l.fold.Index.Leased())
	return *r.capacity
}

// nextChange is when the queue may change by itself. A caller that is bound to a tenant does not learn it: it would
// learn when the jobs of others are due.
func (l *loop) nextChange(c *Caller) lessor.Instant {
	if c.Tenant != nil {
		return 0
	}
	next := l.fold.DueAt
	if at, ok := l.fold.NextCheck(l.cfg.Sweep); ok && (next == 0 || at < next) {
		next = at
	}
	return next
}
