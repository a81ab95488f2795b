package scheduler

import (
	"container/heap"
	"context"

	"lessor"
	"lessor/internal/rules"
)

// sweepLimit bounds the leases looked at in one commit; the rest follow in the next.
const sweepLimit = 2000

// expire ends leases that are over: at most as many as the brake allows.
func (p *pass) expire(ctx context.Context) error {
	f := p.s.fold
	if !f.sweepDue(p.now, p.s.cfg.Sweep) {
		return nil
	}
	var ids []lessor.LeaseID
	for len(f.looks) > 0 && f.looks[0].at <= p.now && len(ids) < sweepLimit {
		ids = append(ids, heap.Pop(&f.looks).(lookAt).id)
	}
	lapsed, err := p.over(ctx, ids)
	if err != nil {
		return err
	}
	elapsed := p.now.Sub(f.sweptAt)
	f.sweptAt = p.now
	if len(lapsed) == 0 {
		return nil
	}
	var silence rules.Silence
	err = p.tx.EachLease(ctx, func(h *rules.Held) error {
		if p.ended[h.ID] == (LeaseEnd{}) {
			silence.Count(p.current(h), p.now, p.serving)
		}
		return nil
	})
	if err != nil {
		return err
	}
	next, allowed, pulled := rules.Brake(silence, p.serving, p.now, elapsed, p.s.cfg.Brake)
	if next != p.serving {
		p.serving, p.stats.MassExpiry = next, pulled
		if err := p.tx.SaveServing(ctx, next); err != nil {
			return err
		}
	}
	allowed = min(allowed, len(lapsed))
	for _, h := range lapsed[allowed:] {
		f.look(h.ID, max(p.now.Add(p.s.cfg.Sweep), rules.NextLook(h, p.now, p.serving)))
	}
	return p.lapse(ctx, lapsed[:allowed])
}

// over looks at leases again: those that live are planned for later, those whose running time is used up end now, and
// those whose heart stopped are returned.
func (p *pass) over(ctx context.Context, ids []lessor.LeaseID) (lapsed []*rules.Held, err error) {
	leases, err := p.tx.Leases(ctx, ids)
	if err != nil {
		return nil, err
	}
	var spent []*rules.Held
	for _, id := range ids {
		h := leases[id]
		if _, gone := p.ended[id]; gone || h == nil {
			continue
		}
		h = p.current(h)
		switch rules.Over(h, p.now, p.serving) {
		case rules.OutcomeExpired:
			lapsed = append(lapsed, h)
		case rules.OutcomeFailed:
			spent = append(spent, h)
		default:
			p.s.fold.look(id, max(p.now+1, rules.NextLook(h, p.now, p.serving)))
		}
	}
	return lapsed, p.lapse(ctx, spent)
}

// current returns a lease as this pass has changed it.
func (p *pass) current(h *rules.Held) *rules.Held {
	if c := p.changed[h.ID]; c != nil {
		return c
	}
	return h
}

// lapse ends leases that are over by themselves.
func (p *pass) lapse(ctx context.Context, held []*rules.Held) error {
	if len(held) == 0 {
		return nil
	}
	jobs := make([]lessor.JobID, len(held))
	for i, h := range held {
		jobs[i] = h.Turn.Job
	}
	specs, err := p.tx.Specs(ctx, jobs)
	if err != nil {
		return err
	}
	for _, h := range held {
		end := rules.Lapse(rules.Over(h, p.now, p.serving))
		next, err := rules.Conclude(h, end, p.s.retries(specs[h.Turn.Job]), p.now, p.s.cfg.Random())
		if err != nil {
			return err
		}
		p.leave(h, next)
	}
	return nil
}
