package scheduler

import (
	"context"
	"fmt"

	"lessor"
	"lessor/internal/rules"
)

// verdict is the end of one attempt of a definition's job.
type verdict struct {
	definition string
	tenant     lessor.TenantID
	lease      lessor.LeaseID
	outcome    rules.Outcome
}

// judge counts the ends of this pass into the circuits of their definitions.
func (p *pass) judge(ctx context.Context) error {
	verdicts := p.verdicts
	if len(verdicts) == 0 {
		return nil
	}
	p.verdicts = nil
	var ids []string
	seen := map[string]bool{}
	for _, v := range verdicts {
		if !seen[v.definition] {
			ids, seen[v.definition] = append(ids, v.definition), true
		}
	}
	circuits, err := p.tx.LockCircuits(ctx, ids, true)
	if err != nil {
		return err
	}
	p.look()
	definitions, err := p.tx.Definitions(ctx, ids)
	if err != nil {
		return err
	}
	before := map[string]rules.Circuit{}
	for id, c := range circuits {
		before[id] = *c
	}
	for _, v := range verdicts {
		d, c := definitions[v.definition], circuits[v.definition]
		if d == nil || c == nil || d.Tenant != v.tenant {
			continue // the definition is gone, and its id may be another tenant's by now
		}
		c.Tenant = d.Tenant
		if err := p.switched(ctx, c, c.Count(v.outcome, v.lease, d, p.now)); err != nil {
			return err
		}
	}
	var changed []*rules.Circuit
	for id, c := range circuits {
		if *c != before[id] && definitions[id] != nil {
			changed = append(changed, c)
		}
	}
	return p.saveCircuits(ctx, changed)
}

func openMessage(c *rules.Circuit) string {
	return fmt.Sprintf("%d attempts of %s failed in a row; its circuit is open until %s", c.Failures, c.Definition, c.RetryAt)
}

// switched tells people that a circuit opened, opened again or closed.
func (p *pass) switched(ctx context.Context, c *rules.Circuit, change rules.CircuitChange) error {
	object := "circuit/" + c.Definition
	scheduler := Caller{Actor: rules.ActorScheduler}
	switch change {
	case rules.CircuitOpened:
		p.audit(scheduler, "circuit.opened", object, nil, rules.ShowCircuit(c))
		return p.renew(ctx, lessor.AlertCircuitOpen, c.Definition, c.Tenant, openMessage(c))
	case rules.CircuitReopened:
		p.audit(scheduler, "circuit.reopened", object, nil, rules.ShowCircuit(c))
		return p.restate(ctx, lessor.AlertCircuitOpen, c.Definition, c.Tenant, openMessage(c))
	case rules.CircuitClosed:
		p.audit(scheduler, "circuit.closed", object, nil, rules.ShowCircuit(c))
		return p.clear(ctx, lessor.AlertCircuitOpen, c.Definition, c.Tenant)
	}
	return nil
}

func (p *pass) saveCircuits(ctx context.Context, cs []*rules.Circuit) error {
	if len(cs) == 0 {
		return nil
	}
	for _, c := range cs {
		if p.l.fold.SetCircuit(c) {
			p.l.fold.ChangeSettings()
		}
	}
	return p.tx.SaveCircuits(ctx, cs)
}

// trials lets one job each of the definitions go whose open circuit may be tried. Under the gate nothing is waited for: a
// circuit that another node counts into waits for the next grant.
func (r *round) trials(ctx context.Context) error {
	f := r.p.l.fold
	ids := f.Trials(r.p.now)
	if len(ids) == 0 {
		return nil
	}
	circuits, err := r.p.tx.LockCircuits(ctx, ids, false)
	if err != nil {
		return err
	}
	r.trial = map[string]*rules.Circuit{}
	for id, c := range circuits {
		if c.Ready(r.p.now) {
			r.trial[id] = c
			f.Index.SetDefinition(f.Blocked(id).Tenant, id, false)
		}
	}
	return nil
}

// try keeps the other jobs of a definition back once one of them is tried.
func (r *round) try(lane rules.Lane) {
	if r.trialOf(lane) != nil {
		r.p.l.fold.Index.SetDefinition(lane.Tenant, lane.Definition, true)
	}
}

// trialOf returns the circuit that a job of this lane may try, nil if there is none. A job of a deleted definition tries nothing, whoever
// has its id now.
func (r *round) trialOf(lane rules.Lane) *rules.Circuit {
	if c := r.trial[lane.Definition]; c != nil && c.Tenant == lane.Tenant {
		return c
	}
	return nil
}

// tried stores which leases are trials, and keeps back again what was not asked for.
func (r *round) tried(ctx context.Context) error {
	var changed []*rules.Circuit
	for i := range r.taken {
		lane := r.taken[i].spec.Lane
		if c := r.trialOf(lane); c != nil {
			c.Try(r.taken[i].held.ID)
			changed = append(changed, c)
			delete(r.trial, lane.Definition)
		}
	}
	for id := range r.trial {
		r.p.l.fold.Block(r.p.l.fold.Blocked(id))
	}
	return r.p.saveCircuits(ctx, changed)
}

// ResetCircuit closes a definition's circuit by hand.
func (s *Scheduler) ResetCircuit(ctx context.Context, c Caller, id string) (lessor.Definition, error) {
	return s.oneDefinition(ctx, c, id, func(ctx context.Context, p *pass, d *rules.Definition) error {
		circuits, err := p.tx.LockCircuits(ctx, []string{id}, true)
		if err != nil {
			return err
		}
		circuit := circuits[id]
		if circuit == nil || circuit.Idle() {
			return nil
		}
		circuit.Tenant = d.Tenant
		was := rules.ShowCircuit(circuit)
		circuit.Reset()
		p.audit(c, "circuit.reset", "circuit/"+id, was, rules.ShowCircuit(circuit))
		if err := p.clear(ctx, lessor.AlertCircuitOpen, id, d.Tenant); err != nil {
			return err
		}
		return p.saveCircuits(ctx, []*rules.Circuit{circuit})
	})
}

// Circuits lists the circuits of definitions that failed lately, the last that opened first, and the cursor of the next page ("" at the end).
func (s *Scheduler) Circuits(ctx context.Context, c Caller, limit int, after string) ([]lessor.Circuit, string, error) {
	if err := rules.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	place, err := namedCursor(after)
	if err != nil {
		return nil, "", err
	}
	q := CircuitQuery{Tenant: c.Tenant, After: place, Limit: limit + 1}
	page, next, err := pageOf(ctx, s, "list circuits", limit, func(c *rules.Circuit) string { return PlaceOfCircuit(c).cursor() },
		func(v View) ([]*rules.Circuit, error) { return v.Circuits(ctx, q) })
	return each(page, rules.ShowCircuit), next, err
}
