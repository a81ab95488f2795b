package scheduler

import (
	"context"
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// ticker returns the ticks of a definition. A zone that is no longer known counts as UTC.
func ticker(d *rules.Definition) rules.Ticker {
	loc, err := time.LoadLocation(d.Zone)
	if err != nil {
		loc = time.UTC
	}
	return rules.TickerOf(d, loc)
}

// lockDefinitions loads definitions for change and keeps other nodes from changing them. If two nodes create a
// definition at once, the second finds it after the gate.
func (p *pass) lockDefinitions(ctx context.Context, ids []string) (map[string]*rules.Definition, error) {
	locked, err := p.tx.LockDefinitions(ctx, ids)
	if err != nil {
		return nil, err
	}
	return p.gateDefinitions(ctx, ids, locked)
}

// lockWithCircuits is lockDefinitions for a change that resets or deletes circuits too. It locks them before the gate,
// because behind it nothing may wait.
func (p *pass) lockWithCircuits(ctx context.Context, ids []string) (map[string]*rules.Definition, error) {
	locked, err := p.tx.LockDefinitions(ctx, ids)
	if err != nil {
		return nil, err
	}
	if _, err := p.tx.LockCircuits(ctx, ids, true); err != nil {
		return nil, err
	}
	return p.gateDefinitions(ctx, ids, locked)
}

// gateDefinitions takes the gate once definitions are locked.
func (p *pass) gateDefinitions(
	ctx context.Context, ids []string, locked map[string]*rules.Definition,
) (map[string]*rules.Definition, error) {
	if err := p.gate(ctx); err != nil {
		return nil, err
	}
	seen, err := p.tx.Definitions(ctx, ids)
	if err != nil {
		return nil, err
	}
	if len(seen) != len(locked) {
		return nil, ErrAgain
	}
	return locked, nil
}

// put stores definitions that differ from the stored ones, and records the actor.
func (p *pass) put(ctx context.Context, c Caller, ds []*rules.Definition, old map[string]*rules.Definition) error {
	var changed []*rules.Definition
	for _, d := range ds {
		was := old[d.ID]
		switch {
		case was == nil:
			rules.Begin(d, ticker, p.now)
			p.audit(c, "definition.created", "definition/"+d.ID, nil, rules.ShowDefinition(d))
		case was.Same(d):
			*d = *was
			continue
		default:
			rules.Replace(d, was, ticker, p.now)
			p.audit(c, "definition.changed", "definition/"+d.ID, rules.ShowDefinition(was), rules.ShowDefinition(d))
		}
		changed = append(changed, d)
	}
	return p.saveDefinitions(ctx, changed)
}

// saveDefinitions writes definitions and updates the fold of every node.
func (p *pass) saveDefinitions(ctx context.Context, ds []*rules.Definition) error {
	if len(ds) == 0 {
		return nil
	}
	if err := p.tx.SaveDefinitions(ctx, ds); err != nil {
		return err
	}
	f := p.l.fold
	for _, d := range ds {
		f.SetPaused(d)
		f.PlanTick(d.DueAt)
	}
	p.l.fold.ChangeSettings()
	return nil
}

func (p *pass) deleteDefinitions(ctx context.Context, c Caller, ds []*rules.Definition) error {
	if len(ds) == 0 {
		return nil
	}
	var ids []string
	for _, d := range ds {
		ids = append(ids, d.ID)
		p.audit(c, "definition.deleted", "definition/"+d.ID, rules.ShowDefinition(d), nil)
		if err := p.clearAlerts(ctx, d); err != nil {
			return err
		}
		p.l.fold.Unblock(d.ID)
	}
	waits := func(st *rules.Standing) bool { return st.Place != rules.Leased }
	if err := p.cancelOpen(ctx, c.Actor, ds, waits); err != nil {
		return err
	}
	p.l.fold.ChangeSettings()
	return p.tx.DeleteDefinitions(ctx, ids)
}

// cancelBatch bounds the jobs of one definition that are cancelled in one step of a transaction. The database ends a
// session that has the gate and does nothing for 250 ms.
const cancelBatch = 2000

// cancelOpen cancels all jobs of definitions that have not ended, of those that match.
func (p *pass) cancelOpen(
	ctx context.Context, actor string, definitions []*rules.Definition, match func(*rules.Standing) bool,
) error {
	left := map[lessor.JobID]bool{} // that stay open
	for more := true; more; {
		limit := len(left) + cancelBatch
		open, err := p.tx.OpenRuns(ctx, definitions, limit)
		if err != nil {
			return err
		}
		var jobs []lessor.JobID
		more = false
		for _, d := range definitions {
			more = more || len(open[d.ID]) == limit
			for _, r := range open[d.ID] {
				if !left[r.Job] {
					jobs, left[r.Job] = append(jobs, r.Job), true
				}
			}
		}
		ended, err := p.cancelMatching(ctx, actor, jobs, match)
		if err != nil {
			return err
		}
		for _, id := range ended {
			delete(left, id)
		}
	}
	return nil
}

// cancelMatching cancels those jobs that match, and returns those that have ended. It locks no others: behind the gate
// a job that another node has locked makes the change start again.
func (p *pass) cancelMatching(
	ctx context.Context, actor string, jobs []lessor.JobID, match func(*rules.Standing) bool,
) (ended []lessor.JobID, err error) {
	seen, err := p.tx.Standings(ctx, jobs)
	if err != nil {
		return nil, err
	}
	jobs = slices.DeleteFunc(jobs, func(id lessor.JobID) bool { return seen[id] == nil || !match(seen[id]) })
	standings, err := p.lockJobs(ctx, jobs)
	if err != nil {
		return nil, err
	}
	for _, id := range jobs {
		st := standings[id]
		if st == nil || st.Place == rules.Ended || !match(st) {
			continue
		}
		ch, err := rules.Cancel(st, false, actor, p.now)
		if err != nil {
			return nil, err
		}
		if err := p.note(ctx, st, ch); err != nil {
			return nil, err
		}
		if ch.Next != nil {
			ended = append(ended, id)
		}
	}
	return ended, p.flush(ctx)
}

// module returns the definitions that a manifest's module has for its tenant, if it is to prune them.
func (p *pass) module(ctx context.Context, plan *rules.ManifestPlan) (all []*rules.Definition, err error) {
	q := DefinitionQuery{Tenant: &plan.Tenant, Module: plan.Module, Limit: pageLimit}
	for plan.Prune {
		page, err := p.tx.DefinitionList(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < q.Limit {
			break
		}
		q.After = PlaceOfDefinition(page[len(page)-1])
	}
	return all, nil
}
