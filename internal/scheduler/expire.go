package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// massExpiry is what the alert about the brake is about.
const massExpiry = "leases"

// sweepLimit bounds the leases looked at in one commit; the rest follow in the next.
const sweepLimit = 2000

// suspect returns the leases that look as if they were over. The others are planned for later.
func (p *pass) suspect(ctx context.Context) (suspects []lessor.LeaseID, err error) {
	f := p.s.fold
	if !f.sweepDue(p.now, p.s.cfg.Sweep) {
		return nil, nil
	}
	var ids []lessor.LeaseID
	for len(f.looks) > 0 && f.looks[0].at <= p.now && len(ids) < sweepLimit {
		ids = append(ids, f.popLook())
	}
	leases, err := p.tx.Peek(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		switch h := leases[id]; {
		case h == nil:
		case rules.Over(h, p.now, p.serving) == "":
			p.planLook(h)
		default:
			suspects = append(suspects, id)
		}
	}
	p.sweptFor, f.sweptAt = p.now.Sub(f.sweptAt), p.now
	return suspects, nil
}

func (p *pass) planLook(h *rules.Held) {
	p.s.fold.look(h.ID, max(p.now+1, rules.NextLook(h, p.now, p.serving)))
}

// expire judges the suspects again, now that nobody else can change them, and ends those that are over: of those whose heart
// stopped, at most as many as the brake allows.
func (p *pass) expire(ctx context.Context) error {
	var lapsed, spent []*rules.Held
	for _, id := range p.suspects {
		h := p.leases[id]
		if h == nil {
			continue
		}
		switch rules.Over(h, p.now, p.serving) {
		case rules.OutcomeExpired:
			lapsed = append(lapsed, h)
		case rules.OutcomeFailed:
			spent = append(spent, h)
		default:
			p.planLook(h)
		}
	}
	if len(lapsed) > 0 {
		allowed, err := p.brake(ctx)
		if err != nil {
			return err
		}
		allowed = min(allowed, len(lapsed))
		for _, h := range lapsed[allowed:] {
			p.s.fold.look(h.ID, max(p.now.Add(p.s.cfg.Sweep), rules.NextLook(h, p.now, p.serving)))
		}
		lapsed = lapsed[:allowed]
	}
	return p.lapse(ctx, append(spent, lapsed...))
}

// brake asks how many of the leases that lapsed may be ended now.
func (p *pass) brake(ctx context.Context) (allowed int, err error) {
	var silence rules.Silence
	err = p.tx.EachLease(ctx, func(h *rules.Held) error {
		if _, gone := p.ended[h.ID]; gone {
			return nil
		}
		if c := p.changed[h.ID]; c != nil {
			h = c
		}
		silence.Count(h, p.now, p.serving)
		return nil
	})
	if err != nil {
		return 0, err
	}
	next, allowed, pulled := rules.Brake(silence, p.serving, p.now, p.sweptFor, p.s.cfg.Brake)
	if next == p.serving {
		return allowed, nil
	}
	p.serving, p.stats.MassExpiry = next, pulled
	if pulled {
		err := p.raise(ctx, lessor.AlertMassExpiry, massExpiry, lessor.TenantID{},
			"many leases of several workers lapsed at once; nothing was ended, they have one more ttl")
		if err != nil {
			return 0, err
		}
	}
	return allowed, p.tx.SaveServing(ctx, next)
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
