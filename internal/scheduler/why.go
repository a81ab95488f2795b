package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// Why tells why a job does not run now, the first reason first.
func (s *Scheduler) Why(ctx context.Context, c Caller, id lessor.JobID) (lessor.Why, error) {
	var w lessor.Why
	err := s.change(ctx, c, func(ctx context.Context, p *pass) error {
		st, err := p.lock(ctx, c, id)
		if err != nil {
			return err
		}
		in := rules.WhyInputs{
			Standing: st, Now: p.now, Serving: p.serving, Draining: p.l.settings.Draining,
			Capacity: p.l.capacity(p.now),
		}
		if st.Place == rules.InQueue {
			if err := p.whyQueued(ctx, st, &in); err != nil {
				return err
			}
		}
		w = lessor.Why{JobID: id, Place: in.Place, Reasons: rules.Why(in, c.Tenant != nil)}
		return nil
	})
	return w, err
}

// whyQueued finds what keeps a queued job from being granted.
func (p *pass) whyQueued(ctx context.Context, st *rules.Standing, in *rules.WhyInputs) error {
	index := p.l.fold.Index
	if place, ok := index.Place(st.Turn.Lane, st.Turn.Seq); ok {
		in.Place = &place
	}
	b := index.Blocked(st.Turn.Lane)
	in.TenantPaused, in.TenantRunning, in.TenantCap = b.TenantPaused, b.TenantRunning, b.TenantCap
	in.ClassPaused, in.ClassRunning, in.ClassCap = b.ClassPaused, b.ClassRunning, b.ClassCap
	if b := p.l.fold.Blocked(st.Spec.Lane.Definition); b.Definition != "" && b.Tenant == st.Spec.Lane.Tenant {
		in.DefinitionPaused, in.Circuit = b.Paused, &b.Circuit
	}
	in.Asked = p.l.workers.asks(st.Spec.Lane.Type, st.Spec.Lane.Tenant, p.now)
	if r := p.l.reservedFor(p.now, in.Capacity); r != nil && r.Seq != st.Turn.Seq {
		in.ReservedUnits = r.Units
	}
	if !b.LockHeld {
		return nil
	}
	return p.tx.EachLease(ctx, func(h *rules.Held) error {
		if h.Tenant == st.Spec.Lane.Tenant && h.LockKey == st.Spec.Lane.LockKey {
			in.LockHolder, in.LockUntil = h.Worker, rules.Effective(h, p.now, p.serving)
		}
		return nil
	})
}
