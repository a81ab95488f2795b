package scheduler

import (
	"context"
	"time"

	"lessor"
)

// retryBudget bounds the types that one pass looks up for parked requests, which takes about a millisecond. The other
// requests are tried in the next pass.
const retryBudget = 20000

// The pause before the requests behind a job that does not fit are woken again because another may be first, which may
// be so after each submission and each grant: at least turnEvery, so that a busy node tries them ten times a second,
// and turnCost for each kind of request, ten times what a try takes, so that a tenth of the time is spent on them.
const (
	turnEvery = 100 * time.Millisecond
	turnCost  = 50 * time.Microsecond
)

// wakeParked reports whether there are parked requests to be tried: it asks the fold what happened, and marks those
// that this may concern.
func (l *loop) wakeParked() bool {
	f, p := l.fold, &l.parked
	woken := f.TakeWoken()
	if p.size == 0 {
		f.Index.Opened(nil)
		return false
	}
	now := f.Serving.LastBeat
	capacity, kept := l.capacity(now), int64(0)
	if r := l.reservedFor(now, capacity); r != nil {
		kept = r.Seq
	}
	usable := capacity.UsableUnits
	all, short := woken.All || usable > p.usable, woken.Freed || kept != p.kept
	behind := p.turn(woken.Turned || usable < p.usable, now)
	p.usable, p.kept = usable, kept
	if all {
		for _, kinds := range p.spaces {
			for _, g := range kinds {
				p.wake(g)
			}
		}
		f.Index.Opened(nil)
		return true
	}
	if short {
		for g := range p.short {
			p.wake(g)
		}
	}
	if short || behind {
		for g := range p.behind {
			p.wake(g)
		}
	}
	for _, worker := range woken.Workers {
		for r := p.workers[worker]; r != nil; r = r.sibling {
			p.wakeOne(r)
		}
	}
	f.Index.Opened(func(tenant lessor.TenantID, typ string) {
		for _, sp := range []space{{}, {true, tenant}} {
			for _, g := range p.spaces[sp] {
				if g.wants(typ) {
					p.wake(g)
				}
			}
		}
	})
	return len(p.groups)+len(p.woken) > 0
}

// turn reports whether the requests behind a job that does not fit are to be woken because another may be first: now,
// or since they were last woken for that.
func (p *parked) turn(another bool, now lessor.Instant) bool {
	p.turned = (p.turned || another) && len(p.behind) > 0
	pause := max(turnEvery, time.Duration(len(p.behind))*turnCost)
	if !p.turned || now.Sub(p.turnedAt).Abs() < pause {
		return false
	}
	p.turned, p.turnedAt = false, now
	return true
}

// retry tries the parked requests that were woken in the order in which they came, as far as the budget of a pass
// allows. A group is done as soon as one of its requests shows that there is no job for any of them.
func (r *round) retry(ctx context.Context) error {
	p := &r.p.l.parked
	turns := p.turns()
	defer func() { p.groups = append(p.groups, turns...) }() // those that are left
	for spent := 0; spent < retryBudget; {
		c, g := p.pick(turns)
		if c == nil {
			break
		}
		p.tried = append(p.tried, c)
		r.p.stats.Retried++
		spent += 1 + len(c.ask.Types)
		if err := r.serve(ctx, c, true); err != nil {
			return err
		}
		if done := r.noneLeft(c); g != nil {
			p.advance(&turns, done)
		}
	}
	return nil
}

// noneLeft reports whether there is nothing in this round for any request of c's kind, after c was tried, and notes
// what they lack. While the server drains each is tried, because each is answered.
func (r *round) noneLeft(c *requestCall) bool {
	free, holder := kind{c.kind, false}, kind{c.kind, true}
	lacks := r.denied[free]
	if lacks == nil {
		if lacks = r.denied[holder]; lacks == nil {
			return false
		}
		// There is no job for a worker that holds a lease; others may have a unique one.
		if choice, _ := r.turnFor(c, c.ask.MaxUnits, false); choice.Denial != nil {
			r.denied[free], lacks = choice.Denial, choice.Denial
		}
	}
	r.p.l.parked.deny(c.group, lacks)
	return r.denied[free] != nil && lacks.Code != lessor.Draining
}

// wakeTwins wakes parked requests that repeat a request which was granted in this pass.
func (p *parked) wakeTwins(c *requestCall) {
	for r := p.workers[c.holder()]; r != nil; r = r.sibling {
		if r.repeats(c) {
			p.wakeOne(r)
		}
	}
}

// replace ends the waiting of requests that c repeats for something else, and returns them. Their worker, which may be
// stopping, hears no answer to them, so that a job that they were granted would be nobody's until the lease expires.
func (p *parked) replace(c *requestCall) (replaced []*requestCall) {
	for r := p.workers[c.holder()]; r != nil; r = r.sibling {
		if r.repeats(c) && r.kind != c.kind {
			replaced = append(replaced, r)
		}
	}
	for _, r := range replaced {
		r.denial = r.group.denial
		p.remove(r)
	}
	return replaced
}

// repeats reports whether two requests of one worker are one that was sent twice.
func (c *requestCall) repeats(o *requestCall) bool {
	return c != o && c.ask.RequestID != "" && c.ask.RequestID == o.ask.RequestID
}
