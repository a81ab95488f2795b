package scheduler

import (
	"context"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// verdict is the end of one attempt of a definition's job.
type verdict struct {
	definition string
	tenant     lessor.TenantID
	job        lessor.JobID
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
	circuits, definitions, err := p.lockCircuits(ctx, ids)
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
		if err := p.noteSwitch(ctx, c, v.job, c.Count(v.outcome, v.lease, d, p.now)); err != nil {
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

// lockCircuits locks the circuits of definitions and reads the definitions.
func (p *pass) lockCircuits(
	ctx context.Context, ids []string,
) (circuits map[string]*rules.Circuit, definitions map[string]*rules.Definition, err error) {
	if circuits, err = p.tx.LockCircuits(ctx, ids, true); err != nil {
		return nil, nil, err
	}
	p.readClock()
	definitions, err = p.tx.Definitions(ctx, ids)
	return circuits, definitions, err
}

// openMessage must be true as long as the circuit is open, also after RetryAt: there may be no job to try.
func openMessage(c *rules.Circuit) string {
	return fmt.Sprintf("%d attempts of %s failed in a row; its circuit is open, and lets one job through after %g s",
		c.Failures, c.Definition, c.RetryAt.Sub(c.OpenedAt).Seconds())
}

// noteSwitch records that a job made a circuit open, open again or close, and raises or clears the alert. The audit has
// the trace id of the job.
func (p *pass) noteSwitch(
	ctx context.Context, c *rules.Circuit, job lessor.JobID, change rules.CircuitChange,
) error {
	if change == rules.CircuitUnchanged {
		return nil
	}
	specs, err := p.tx.Specs(ctx, []lessor.JobID{job})
	if err != nil {
		return err
	}
	object := "circuit/" + c.Definition
	scheduler := Caller{Actor: rules.ActorScheduler}
	if spec := specs[job]; spec != nil {
		scheduler.TraceID = spec.TraceID
	}
	switch change {
	case rules.CircuitOpened:
		p.audit(scheduler, "circuit.opened", object, nil, rules.ShowCircuit(c))
		return p.raiseAnew(ctx, lessor.AlertCircuitOpen, c.Definition, c.Tenant, openMessage(c))
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

// retryLocked is how long after a round that met a locked circuit the requests that wait are tried again. A transaction
// takes some milliseconds, and nothing tells of its end if it changes nothing.
const retryLocked = 100 * time.Millisecond

// openTrials unblocks the definitions whose open circuit may be tried, until one of their jobs is taken, and blocks
// those that an earlier round unblocked and this one may not try. A node that holds the gate waits for no lock: a
// circuit that another node has locked is tried at a later grant.
func (r *round) openTrials(ctx context.Context) error {
	f := r.p.l.fold
	if ids := f.Trials(r.p.now); len(ids) > 0 {
		circuits, err := r.p.tx.LockCircuits(ctx, ids, false)
		if err != nil {
			return err
		}
		r.trial = map[string]*rules.Circuit{}
		for id, c := range circuits {
			if c.Ready(r.p.now) {
				r.trial[id] = c
			}
		}
		if len(circuits) < len(ids) {
			f.PlanTrial(r.p.now.Add(retryLocked))
		}
	}
	f.OpenTrials(func(id string) bool { return r.trial[id] != nil })
	return nil
}

// closeTrial blocks a definition again once one of its jobs was taken as the trial of its circuit.
func (r *round) closeTrial(lane rules.Lane) {
	if r.trialOf(lane) != nil {
		r.p.l.fold.Index.SetDefinition(lane.Tenant, lane.Definition, true)
	}
}

// trialOf returns the circuit that a job of this lane may try, nil if there is none. A job of a deleted definition
// tries none, even if its id names another definition by now.
func (r *round) trialOf(lane rules.Lane) *rules.Circuit {
	if c := r.trial[lane.Definition]; c != nil && c.Tenant == lane.Tenant {
		return c
	}
	return nil
}
