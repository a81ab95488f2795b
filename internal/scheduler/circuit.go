package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// ResetCircuit closes a definition's circuit by hand.
func (s *Scheduler) ResetCircuit(ctx context.Context, c Caller, id string) (lessor.Definition, error) {
	reset := func(ctx context.Context, p *pass, d *rules.Definition) error {
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
	}
	return s.lockedDefinition(ctx, c, id, (*pass).lockWithCircuits, reset)
}

// Circuits lists the circuits of definitions that failed lately, the last that opened first, and the cursor of the next
// page ("" at the end).
func (s *Scheduler) Circuits(ctx context.Context, c Caller, limit int, after string) ([]lessor.Circuit, string, error) {
	if err := rules.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	place, err := namedCursor(after)
	if err != nil {
		return nil, "", err
	}
	q := CircuitQuery{Tenant: c.Tenant, After: place, Limit: limit + 1}
	page, next, err := pageOf(ctx, s, "list circuits", limit,
		func(c *rules.Circuit) string { return PlaceOfCircuit(c).cursor() },
		func(v View) ([]*rules.Circuit, error) { return v.Circuits(ctx, q) })
	return each(page, rules.ShowCircuit), next, err
}
