package scheduler

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// massExpiry is the subject of the alert about the brake.
const massExpiry = "leases"

// sweepLimit bounds the leases looked at in one commit. The rest follow in the next, which comes at once.
const sweepLimit = 2000

// findSuspects returns the leases that seem to be over or must be corrected. It plans a later check of the others.
func (p *pass) findSuspects(ctx context.Context) (suspects []lessor.LeaseID, err error) {
	f := p.l.fold
	if f.NoteClock(p.now); !f.CheckDue(p.now, p.l.cfg.Sweep) {
		return nil, nil
	}
	ids, since := f.TakeChecks(p.now, sweepLimit)
	if p.sweptFor = since; p.serving.LapsedAt != 0 {
		f.RestChecks(p.now) // the brake bounds how many leases end in a sweep
	}
	leases, err := p.tx.Peek(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		switch h := leases[id]; {
		case h == nil:
		case rules.ExpiryCheck(h, p.now, p.serving) > p.now && rules.Over(h, p.now, p.serving) == "":
			p.planCheck(h)
		default:
			suspects = append(suspects, id)
		}
		delete(leases, id) // its check may have been planned twice
	}
	return suspects, nil
}

func (p *pass) planCheck(h *rules.Held) {
	p.l.fold.PlanCheck(h.ID, max(p.now+1, rules.ExpiryCheck(h, p.now, p.serving)))
}

// expire judges the suspects again, now that no other node can change them, answers the calls that came late, and ends
// leases that are over. Of the suspects without heartbeats it ends at most as many as the brake allows. Of the leases
// that late calls named it ends all, so that a lease that was reported as over stays over.
func (p *pass) expire(ctx context.Context) error {
	named := p.late.leases
	allowed := len(named) + len(p.suspects)
	if p.anyLapsed() {
		var err error
		if allowed, err = p.brake(ctx); err != nil {
			return err
		}
	}
	p.answerLate()
	var over []*rules.Held
	byID := func(a, b lessor.LeaseID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) }
	for _, id := range slices.SortedFunc(maps.Keys(named), byID) {
		switch h := p.leases[id]; {
		case h == nil:
		case rules.Over(h, p.now, p.serving) == "":
			p.keepLease(h)
		default:
			over = append(over, h)
			allowed--
		}
	}
	for _, id := range p.suspects {
		h := p.leases[id]
		if _, done := named[id]; done || h == nil {
			continue
		}
		switch o := rules.Over(h, p.now, p.serving); {
		case o == "":
			p.keepLease(h)
		case o == rules.OutcomeExpired && allowed <= 0:
			p.l.fold.PlanCheck(h.ID, p.now.Add(p.l.cfg.Sweep))
		default:
			over = append(over, h)
			allowed--
		}
	}
	return p.endLapsed(ctx, over)
}

// keepLease plans the next check of a live lease, and corrects it.
func (p *pass) keepLease(h *rules.Held) {
	if rules.SetRight(h, p.now, p.serving) {
		p.changed[h.ID] = h
	}
	p.planCheck(h)
}

// anyLapsed reports whether a suspect, or a lease that a late call named, has lapsed.
func (p *pass) anyLapsed() bool {
	lapsed := func(id lessor.LeaseID) bool {
		h := p.leases[id]
		return h != nil && rules.Over(h, p.now, p.serving) == rules.OutcomeExpired
	}
	for id := range p.late.leases {
		if lapsed(id) {
			return true
		}
	}
	return slices.ContainsFunc(p.suspects, lapsed)
}

// brake returns how many of the lapsed leases may be ended now. It counts all leases; late calls that follow each other
// closely share one count.
func (p *pass) brake(ctx context.Context) (allowed int, err error) {
	f := p.l.fold
	if len(p.suspects) == 0 && p.now.Sub(f.JudgedAt).Abs() < p.l.cfg.Sweep/4 {
		return 0, nil
	}
	silence := rules.Silence{Lapsed: 1}
	if rules.BrakeReady(p.serving, p.now, p.l.cfg.Brake) {
		if silence, err = p.silence(ctx); err != nil {
			return 0, err
		}
	}
	next, allowed, pulled := rules.Brake(silence, p.serving, p.now, p.sweptFor, p.l.cfg.Brake)
	if f.JudgedAt = p.now; pulled {
		f.WakeAll()
	}
	if next == p.serving {
		return allowed, nil
	}
	p.serving, p.stats.MassExpiry = next, pulled
	if pulled {
		err := p.raiseAnew(ctx, lessor.AlertMassExpiry, massExpiry, lessor.TenantID{},
			"many leases of several workers lapsed at once; nothing was ended, they have one more ttl")
		if err != nil {
			return 0, err
		}
	}
	return allowed, p.tx.SaveServing(ctx, next)
}

// silence counts the leases without recent heartbeats.
func (p *pass) silence(ctx context.Context) (c rules.Silence, err error) {
	err = p.tx.EachLease(ctx, func(h *rules.Held) error {
		if _, gone := p.ended[h.ID]; gone {
			return nil
		}
		if changed := p.changed[h.ID]; changed != nil {
			h = changed
		}
		c.Count(h, p.now, p.serving)
		return nil
	})
	return c, err
}

// endLapsed ends leases that have lapsed or run too long.
func (p *pass) endLapsed(ctx context.Context, held []*rules.Held) error {
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
		next, err := rules.Conclude(h, end, p.l.retries(specs[h.Turn.Job]), p.now, p.l.cfg.Random())
		if err != nil {
			return err
		}
		p.endLease(h, next)
	}
	return nil
}
