package scheduler

import (
	"bytes"
	"context"
	"encoding/hex"

	"lessor"
	"lessor/internal/rules"
)

// Runs lists the audit of runs, newest first, and the cursor of the next page ("" at the end). A page may be short and
// still have a successor.
func (s *Scheduler) Runs(ctx context.Context, c Caller, f lessor.RunFilter) ([]lessor.Run, string, error) {
	if err := rules.CheckRuns(f); err != nil {
		return nil, "", err
	}
	tenant, err := c.within(f.Tenant)
	if err != nil {
		return nil, "", err
	}
	after, err := s.behind(f.Cursor)
	if err != nil {
		return nil, "", err
	}
	var jobs, ticks runPage
	err = s.view(ctx, "list runs", func(v View) (err error) {
		if f.Status != lessor.RunCircuitOpen {
			if jobs, err = jobRuns(ctx, v, f, tenant, after); err != nil {
				return err
			}
		}
		if f.Status == "" || f.Status == lessor.RunCircuitOpen {
			ticks, err = circuitRuns(ctx, v, f, tenant, after)
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	runs, next := merge(jobs, ticks, f.Limit)
	return runs, s.jobCursor(next), nil
}

// runPage is a page of runs of one kind. Others may follow below next, if it is set.
type runPage struct {
	runs []lessor.Run
	next *lessor.JobID
}

func jobRuns(
	ctx context.Context, v View, f lessor.RunFilter, tenant *lessor.TenantID, after *lessor.JobID,
) (p runPage, err error) {
	q := ListQuery{Tenant: tenant, Status: f.Status, Trace: f.Trace, After: after, Limit: f.Limit}
	q.Claimed = f.Status != lessor.RunQueued
	if u, err := lessor.ParseUUID(f.JobID); err == nil {
		if p, plain, err := plainRun(ctx, v, f, tenant, after, lessor.JobID{UUID: u}); plain || err != nil {
			return p, err
		}
	}
	q.Definition = f.JobID
	for left := f.Limit; ; { // a few at a time: a run is small, its job may be large
		q.Limit = min(listStep, left)
		page, err := v.List(ctx, q)
		if err != nil {
			return p, err
		}
		for _, st := range page.Standings {
			if r, ran := rules.RunOf(st); ran {
				p.runs = append(p.runs, r)
			}
		}
		p.next, q.After = page.Next, page.Next
		if left -= len(page.Standings); p.next == nil || len(page.Standings) < q.Limit || left <= 0 {
			return p, nil // a store that has looked at enough returns fewer
		}
	}
}

// plainRun returns the run of a job without a definition, whose id is the id of its run. Plain is whether there is one:
// a definition may have an id that looks like that of a job.
func plainRun(
	ctx context.Context, v View, f lessor.RunFilter, tenant *lessor.TenantID, after *lessor.JobID, id lessor.JobID,
) (p runPage, plain bool, err error) {
	found, err := v.Standings(ctx, []lessor.JobID{id})
	if err != nil || found[id] == nil {
		return p, false, err
	}
	r, ran := rules.RunOf(found[id])
	if !ran || r.JobID != f.JobID || tenant != nil && *tenant != r.TenantID {
		return p, false, nil
	}
	if after == nil && (f.Status == "" || f.Status == r.Status) && (f.Trace == "" || f.Trace == r.TraceID) {
		p.runs = []lessor.Run{r}
	}
	return p, true, nil
}

func circuitRuns(
	ctx context.Context, v View, f lessor.RunFilter, tenant *lessor.TenantID, after *lessor.JobID,
) (p runPage, err error) {
	q := CircuitTickQuery{Definition: f.JobID, Tenant: tenant, After: after, Limit: f.Limit}
	if f.Trace != "" { // a run that was not submitted has a trace id that is made from its own id
		b, _ := hex.DecodeString(f.Trace) // what is no hex is too short
		if len(b) != len(lessor.UUID{}) {
			return p, nil
		}
		q.Run = &lessor.JobID{UUID: lessor.UUID(b)}
	}
	rows, err := v.CircuitTicks(ctx, q)
	if err != nil {
		return p, err
	}
	for i := range rows {
		p.runs = append(p.runs, rules.CircuitRun(&rows[i], traceOf(rows[i].Run)))
	}
	if len(rows) == f.Limit {
		p.next = &rows[len(rows)-1].Run
	}
	return p, nil
}

// merge puts two pages into one order, and returns the last run taken if others may follow. Nothing is taken from below
// where one of the pages was cut.
func merge(a, b runPage, limit int) ([]lessor.Run, *lessor.JobID) {
	runs := []lessor.Run{}
	next := later(a.next, b.next)
	for len(runs) < limit && len(a.runs)+len(b.runs) > 0 {
		from := &a
		if len(a.runs) == 0 || len(b.runs) > 0 && older(a.runs[0].RunID, b.runs[0].RunID) {
			from = &b
		}
		r := from.runs[0]
		if next != nil && older(r.RunID, *next) {
			break
		}
		from.runs = from.runs[1:]
		runs = append(runs, r)
	}
	if len(a.runs)+len(b.runs) > 0 && len(runs) > 0 {
		return runs, &runs[len(runs)-1].RunID
	}
	return runs, next
}

func older(a, b lessor.JobID) bool { return bytes.Compare(a.UUID[:], b.UUID[:]) < 0 }

// later returns the one of two cursors that a page must not go below.
func later(a, b *lessor.JobID) *lessor.JobID {
	if a == nil || b != nil && older(*a, *b) {
		return b
	}
	return a
}

// RunAudit returns the audit of one run.
func (s *Scheduler) RunAudit(ctx context.Context, c Caller, id lessor.JobID) (run lessor.Run, err error) {
	found := false
	err = s.view(ctx, "load run", func(v View) error {
		standings, err := v.Standings(ctx, []lessor.JobID{id})
		if err != nil {
			return err
		}
		if st := standings[id]; st != nil {
			run, found = rules.RunOf(st)
			return nil
		}
		rows, err := v.CircuitTicks(ctx, CircuitTickQuery{Run: &id, Limit: 1})
		if len(rows) > 0 {
			run, found = rules.CircuitRun(&rows[0], traceOf(id)), true
		}
		return err
	})
	if err == nil && (!found || !c.sees(run.TenantID)) {
		return lessor.Run{}, lessor.ErrRunNotFound
	}
	return run, err
}

// RunError returns what went wrong in the attempt that a reference names. A job that was refused at the grant had none
// and is named by its own id.
func (s *Scheduler) RunError(ctx context.Context, c Caller, ref string) (e lessor.RunError, err error) {
	var a *rules.Attempt
	var tenant lessor.TenantID
	err = s.view(ctx, "load error", func(v View) (err error) {
		if a, tenant, err = v.AttemptOf(ctx, leaseID(ref)); a != nil || err != nil {
			return err
		}
		id := lessor.JobID{UUID: leaseID(ref).UUID}
		standings, err := v.Standings(ctx, []lessor.JobID{id})
		if st := standings[id]; st != nil && st.Place == rules.Ended && st.Done.Attempt.Lease.IsZero() {
			a, tenant = &st.Done.Attempt, st.Spec.Lane.Tenant
		}
		return err
	})
	if err != nil {
		return e, err
	}
	if a != nil && c.sees(tenant) {
		if e, failed := rules.ErrorOf(a); failed {
			return e, nil
		}
	}
	return e, lessor.ErrErrorNotFound
}
