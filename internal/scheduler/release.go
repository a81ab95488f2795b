package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// Release gives a lease back without costing the job an attempt.
func (s *Scheduler) Release(ctx context.Context, c Caller, id lessor.LeaseID, r lessor.Release) error {
	end, report, err := rules.Release(&r)
	if err != nil {
		return err
	}
	end.Actor = rules.ActorOf(c.Actor, *r.WorkerID)
	e := ending{id: id, worker: *r.WorkerID, end: end, report: report}
	if end.Reason == lessor.ReleaseFolderHeld {
		return s.releaseHung(ctx, c, e)
	}
	return s.endOne(ctx, c, e)
}

// releaseHung ends a lease whose job cannot be started because an earlier attempt holds its folder, and says so.
func (s *Scheduler) releaseHung(ctx context.Context, c Caller, e ending) error {
	o := &endCall{call: s.newCall(), caller: c, ends: []ending{e}}
	if err := s.do(ctx, c, o); err != nil {
		return err
	}
	if h := o.ends[0].held; h != nil {
		if err := s.Raise(ctx, rules.FolderHeld(h)); err != nil {
			return err
		}
	}
	return s.explain(ctx, c, e.id, o.ends[0].err)
}

// reportOf returns what a job that is released has reported, in this pass too.
func (p *pass) reportOf(id lessor.JobID) rules.Report {
	var all rules.Report
	if r := p.reported[id]; r != nil {
		all = *r
	}
	for _, r := range p.reports {
		if r.Job == id {
			all = all.Merge(r)
		}
	}
	return all
}
