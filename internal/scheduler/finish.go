package scheduler

import (
	"context"
	"errors"
	"fmt"

	"lessor"
	"lessor/internal/rules"
)

// ErrNoLease refuses to revoke a lease. An operator has no work to stop, as lessor.ErrLeaseNotFound advises.
var ErrNoLease = &lessor.Error{Code: lessor.CodeLeaseNotFound, Detail: "no such lease, or it is over"}

// endCall asks to end one lease, or a batch of them.
type endCall struct {
	call
	caller Caller
	ends   []ending
	only   [1]ending // room for the ends of a call about one lease
}

type ending struct {
	id     lessor.LeaseID
	worker string // "" = any: an operator asks
	end    rules.End
	held   *rules.Held // the lease, once it has ended
	err    error
}

func (c *endCall) size() int {
	n := 0
	for i := range c.ends {
		n += 200 + len(c.ends[i].end.Result) + len(c.ends[i].end.Report.Checkpoint)
	}
	return n
}

// Complete ends an attempt with the outcome that its worker reports.
func (s *Scheduler) Complete(ctx context.Context, c Caller, id lessor.LeaseID, d lessor.Completion) error {
	end, err := rules.Completion(&d, "")
	if err != nil {
		return err
	}
	end.Actor = rules.ActorOf(c.Actor, *d.WorkerID)
	return s.endOne(ctx, c, ending{id: id, worker: *d.WorkerID, end: end})
}

// CompleteAll ends many attempts of one worker and returns one answer per lease, in the same order.
func (s *Scheduler) CompleteAll(
	ctx context.Context, c Caller, worker string, ds []lessor.LeaseCompletion,
) ([]LeaseAnswer, error) {
	o, err := s.endAll(c, worker, "leases", ds)
	if err != nil {
		return nil, err
	}
	if err := s.do(ctx, &o.caller, o); err != nil {
		return nil, err
	}
	return s.allEnded(ctx, o, ds), nil
}

// allEnded returns the answers to a batch of completions.
func (s *Scheduler) allEnded(ctx context.Context, o *endCall, ds []lessor.LeaseCompletion) []LeaseAnswer {
	answers := make([]LeaseAnswer, len(ds))
	for i := range ds {
		answers[i] = LeaseAnswer{LeaseID: *ds[i].LeaseID, Err: o.ends[i].err}
	}
	s.explainAll(ctx, o.caller, answers)
	return answers
}

// endAll checks a batch of completions that is in the named field.
func (s *Scheduler) endAll(c Caller, worker, field string, ds []lessor.LeaseCompletion) (*endCall, error) {
	if err := rules.BatchSize(field, len(ds)); err != nil {
		return nil, err
	}
	if _, err := rules.WorkerID(&worker); err != nil {
		return nil, err
	}
	o := &endCall{call: s.newCall(), caller: c, ends: make([]ending, len(ds))}
	actor := rules.ActorOf(c.Actor, worker)
	var faults rules.Faults
	for i := range ds {
		d := &ds[i]
		completion := lessor.Completion{
			WorkerID: &worker, Status: d.Status, Result: d.Result, Error: d.Error, Retryable: d.Retryable,
		}
		end, err := rules.Completion(&completion, "")
		if err != nil || d.LeaseID == nil {
			prefix := fmt.Sprintf("%s[%d].", field, i)
			if _, err = rules.Completion(&completion, prefix); d.LeaseID == nil {
				err = rules.Missing(prefix + "lease_id")
			}
			if err := faults.Add(err); err != nil {
				return nil, err
			}
			continue
		}
		end.Actor = actor
		o.ends[i] = ending{id: leaseID(*d.LeaseID), worker: worker, end: end}
	}
	return o, faults.Err()
}

// Revoke takes a lease from its worker: the attempt fails and is retried as usual.
func (s *Scheduler) Revoke(ctx context.Context, c Caller, id lessor.LeaseID, reason string) error {
	end, err := rules.Revoke(reason, c.Actor)
	if err != nil {
		return err
	}
	err = s.endOne(ctx, c, ending{id: id, end: end})
	if unexplained(err) {
		return ErrNoLease
	}
	return err
}

func (s *Scheduler) endOne(ctx context.Context, c Caller, e ending) error {
	o := &endCall{call: s.newCall(), caller: c, only: [1]ending{e}}
	o.ends = o.only[:]
	if err := s.do(ctx, &o.caller, o); err != nil {
		return err
	}
	return s.explain(ctx, c, e.id, o.only[0].err)
}

// explain adds to a refusal "no such lease" how the lease ended, if the store still knows.
func (s *Scheduler) explain(ctx context.Context, c Caller, id lessor.LeaseID, err error) error {
	if err == nil {
		return nil
	}
	answers := []LeaseAnswer{{LeaseID: id.String(), Err: err}}
	s.explainAll(ctx, c, answers)
	return answers[0].Err
}

// explainAll is explain for a batch. If the store fails now, the refusals are answered without their reasons: what was
// committed stays.
func (s *Scheduler) explainAll(ctx context.Context, c Caller, answers []LeaseAnswer) {
	var ids []lessor.LeaseID
	for _, a := range answers {
		if unexplained(a.Err) {
			ids = append(ids, leaseID(a.LeaseID))
		}
	}
	if len(ids) == 0 {
		return
	}
	var ends map[lessor.LeaseID]LeaseEnd
	err := s.store.View(ctx, func(v View) (err error) {
		ends, err = v.LeaseEnds(ctx, ids)
		return err
	})
	if err != nil {
		return
	}
	for i, a := range answers {
		if end, ok := ends[leaseID(a.LeaseID)]; ok && unexplained(a.Err) && c.sees(end.Tenant) {
			reason := rules.EndedReason(end.Outcome, end.Reason)
			answers[i].Err = &lessor.Error{
				Code: lessor.CodeLeaseNotFound, Detail: "the lease has ended (" + reason + ")", EndedReason: reason,
			}
		}
	}
}

func unexplained(err error) bool {
	var e *lessor.Error
	return errors.As(err, &e) && e.Code == lessor.CodeLeaseNotFound && e.EndedReason == ""
}

// Release gives a lease back without costing the job an attempt.
func (s *Scheduler) Release(ctx context.Context, c Caller, id lessor.LeaseID, r lessor.Release) error {
	end, err := rules.Release(&r)
	if err != nil {
		return err
	}
	end.Actor = rules.ActorOf(c.Actor, *r.WorkerID)
	e := ending{id: id, worker: *r.WorkerID, end: end}
	if end.Reason == lessor.ReleaseFolderHeld {
		return s.releaseHung(ctx, c, e)
	}
	return s.endOne(ctx, c, e)
}

// releaseHung ends a lease whose job cannot be started because an earlier attempt holds its folder, and says so.
func (s *Scheduler) releaseHung(ctx context.Context, c Caller, e ending) error {
	o := &endCall{call: s.newCall(), caller: c, only: [1]ending{e}}
	o.ends = o.only[:]
	if err := s.do(ctx, &o.caller, o); err != nil {
		return err
	}
	if h := o.only[0].held; h != nil {
		if err := s.Raise(ctx, rules.FolderHeld(h)); err != nil {
			return err
		}
	}
	return s.explain(ctx, c, e.id, o.only[0].err)
}
