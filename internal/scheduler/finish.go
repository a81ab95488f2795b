package scheduler

import (
	"context"
	"errors"
	"fmt"

	"lessor"
	"lessor/internal/rules"
)

// endCall asks to end one lease, or a batch of them.
type endCall struct {
	call
	caller Caller
	ends   []ending
}

type ending struct {
	id     lessor.LeaseID
	worker string // "" = whoever holds it (an operator asks)
	end    rules.End
	report rules.Report
	held   *rules.Held // the lease, once it has ended
	err    error
}

func (c *endCall) size() int {
	n := 0
	for i := range c.ends {
		n += 200 + len(c.ends[i].end.Result) + len(c.ends[i].report.Checkpoint)
	}
	return n
}

// Complete ends an attempt as its worker says.
func (s *Scheduler) Complete(ctx context.Context, c Caller, id lessor.LeaseID, d lessor.Completion) error {
	end, report, err := rules.Completion(&d, "")
	if err != nil {
		return err
	}
	end.Actor = rules.ActorOf(c.Actor, *d.WorkerID)
	return s.endOne(ctx, c, ending{id: id, worker: *d.WorkerID, end: end, report: report})
}

// CompleteAll ends many attempts of one worker and answers each for itself, in the order asked.
func (s *Scheduler) CompleteAll(ctx context.Context, c Caller, worker string, ds []lessor.LeaseCompletion) ([]LeaseAnswer, error) {
	if err := rules.BatchSize("leases", len(ds)); err != nil {
		return nil, err
	}
	o := &endCall{call: s.newCall(), caller: c, ends: make([]ending, len(ds))}
	answers := make([]LeaseAnswer, len(ds))
	for i := range ds {
		d := &ds[i]
		prefix := fmt.Sprintf("leases[%d].", i)
		if d.LeaseID == nil {
			return nil, rules.Missing(prefix + "lease_id")
		}
		end, report, err := rules.Completion(&lessor.Completion{
			WorkerID: &worker, Status: d.Status, Result: d.Result, Error: d.Error, Retryable: d.Retryable,
		}, prefix)
		if err != nil {
			return nil, err
		}
		end.Actor = rules.ActorOf(c.Actor, worker)
		o.ends[i] = ending{id: leaseID(*d.LeaseID), worker: worker, end: end, report: report}
		answers[i].LeaseID = *d.LeaseID
	}
	if err := s.do(ctx, c, o); err != nil {
		return nil, err
	}
	for i := range answers {
		answers[i].Err = o.ends[i].err
	}
	return answers, s.explainAll(ctx, c, answers)
}

// Revoke takes a lease from its worker: the attempt fails and is retried as usual.
func (s *Scheduler) Revoke(ctx context.Context, c Caller, id lessor.LeaseID, reason string) error {
	end, err := rules.Revoke(reason, c.Actor)
	if err != nil {
		return err
	}
	return s.endOne(ctx, c, ending{id: id, end: end})
}

func (s *Scheduler) endOne(ctx context.Context, c Caller, e ending) error {
	o := &endCall{call: s.newCall(), caller: c, ends: []ending{e}}
	if err := s.do(ctx, c, o); err != nil {
		return err
	}
	return s.explain(ctx, c, e.id, o.ends[0].err)
}

// end decides the ends of this pass. A call that repeats the one that ended the lease is answered the same.
func (p *pass) end(ctx context.Context, calls []*endCall) error {
	var gone []lessor.LeaseID
	var failing, released []lessor.JobID
	for _, c := range calls {
		for i := range c.ends {
			switch h := p.leases[c.ends[i].id]; {
			case h == nil:
				gone = append(gone, c.ends[i].id)
			case c.ends[i].end.Outcome == rules.OutcomeFailed:
				failing = append(failing, h.Turn.Job)
			case c.ends[i].end.Outcome == rules.OutcomeReleased:
				released = append(released, h.Turn.Job)
			}
		}
	}
	before, err := p.tx.LeaseEnds(ctx, gone)
	if err != nil {
		return err
	}
	specs, err := p.tx.Specs(ctx, failing)
	if err != nil {
		return err
	}
	if len(released) > 0 {
		if p.reported, err = p.tx.Reports(ctx, released); err != nil {
			return err
		}
	}
	for _, c := range calls {
		for i := range c.ends {
			p.endAs(c.caller, &c.ends[i], specs, before)
		}
	}
	return nil
}

// endAs ends one lease, or finds that the same call ended it before.
func (p *pass) endAs(c Caller, e *ending, specs map[lessor.JobID]*rules.Spec, before map[lessor.LeaseID]LeaseEnd) {
	e.err = p.endOne(c, e, specs)
	if errors.Is(e.err, lessor.ErrLeaseNotFound) && p.repeated(c, e, before) {
		e.err = nil
	}
}

// repeated reports whether the lease that e names was ended by the same call of the same worker.
func (p *pass) repeated(c Caller, e *ending, before map[lessor.LeaseID]LeaseEnd) bool {
	was, ok := p.ended[e.id]
	if !ok {
		was, ok = before[e.id]
	}
	return ok && c.sees(was.Tenant) && e.end.Said != rules.SaidNothing && was.Said == e.end.Said && was.Worker == e.worker
}

func (p *pass) endOne(c Caller, e *ending, specs map[lessor.JobID]*rules.Spec) error {
	h := p.leases[e.id]
	if h != nil && !c.sees(h.Tenant) {
		h = nil
	}
	by := c.hand(e.worker)
	if e.worker == "" && h != nil {
		by = rules.Hand{Holder: h.Holder(), Token: h.Token}
	}
	if err := rules.Touch(h, by, p.now, p.serving); err != nil {
		if p.tooLate(h) {
			p.late.ends = append(p.late.ends, lateEnd{c, e, specs})
		}
		return err
	}
	said := e.report
	if e.end.Outcome == rules.OutcomeReleased {
		said = rules.Released(&e.end, p.reportOf(h.Turn.Job), e.report)
	}
	next, err := rules.Conclude(h, e.end, p.l.retries(specs[h.Turn.Job]), p.now, p.l.cfg.Random())
	if err != nil {
		return err
	}
	if said.Checkpoint != nil || said.Mark != nil {
		p.report(h, said)
	}
	e.held = h
	p.l.workers.beat(c, h.Worker, p.now)
	p.leave(h, next)
	return nil
}

// retries returns what bounds the attempts of a job; spec may be nil when no backoff is needed.
func (s *Scheduler) retries(spec *rules.Spec) rules.Retries {
	r := rules.Retries{MaxInterruptions: s.cfg.MaxInterruptions}
	if spec != nil {
		r.BackoffFirst, r.BackoffMax = spec.BackoffFirst, spec.BackoffMax
	}
	return r
}

// leave takes a job from its lease to where it goes next.
func (p *pass) leave(h *rules.Held, n rules.Next) {
	a := n.Attempt
	if n.Done != nil {
		a = &n.Done.Attempt
	}
	p.ended[h.ID] = LeaseEnd{Worker: h.Worker, Tenant: h.Tenant, Outcome: a.Outcome, Said: a.Said, Reason: a.Reason}
	p.leases[h.ID] = nil
	delete(p.changed, h.ID)
	p.moves = append(p.moves, Move{From: rules.Leased, To: n.Place, Turn: n.Turn, Held: h, Wait: n.Wait, Attempt: n.Attempt, Done: n.Done})
	p.l.fold.Free(h)
	p.arrive(n)
	p.verdict(h, a.Outcome)
	p.stats.Ended = append(p.stats.Ended, EndedAttempt{a.Outcome, p.now.Sub(h.IssuedAt)})
	p.tell(h.Turn.Job, h.Tenant, func() lessor.Event { return rules.Concluded(h, n) })
}

// verdict notes how an attempt of a definition's job ended.
func (p *pass) verdict(h *rules.Held, o rules.Outcome) {
	if d := p.l.fold.Index.Lane(h.Turn.Lane).Definition; d != "" {
		p.verdicts = append(p.verdicts, verdict{definition: d, tenant: h.Tenant, lease: h.ID, outcome: o})
	}
}

// arrive brings the fold up to date with where a job went.
func (p *pass) arrive(n rules.Next) {
	switch n.Place {
	case rules.InQueue:
		p.l.fold.Enqueue(n.Turn)
	case rules.Delayed:
		p.l.fold.Delay(n.Wait.Until)
	}
}

// explain adds to "no such lease" how it ended, as far as that is remembered.
func (s *Scheduler) explain(ctx context.Context, c Caller, id lessor.LeaseID, err error) error {
	if err == nil {
		return nil
	}
	answers := []LeaseAnswer{{LeaseID: id.String(), Err: err}}
	if err := s.explainAll(ctx, c, answers); err != nil {
		return err
	}
	return answers[0].Err
}

func (s *Scheduler) explainAll(ctx context.Context, c Caller, answers []LeaseAnswer) error {
	var ids []lessor.LeaseID
	for _, a := range answers {
		if unexplained(a.Err) {
			ids = append(ids, leaseID(a.LeaseID))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var ends map[lessor.LeaseID]LeaseEnd
	err := s.store.View(ctx, func(v View) (err error) {
		ends, err = v.LeaseEnds(ctx, ids)
		return err
	})
	if err != nil {
		return storeRefusal(fmt.Errorf("load lease ends: %w", err))
	}
	for i, a := range answers {
		if end, ok := ends[leaseID(a.LeaseID)]; ok && unexplained(a.Err) && c.sees(end.Tenant) {
			reason := rules.EndedReason(end.Outcome, end.Reason)
			answers[i].Err = &lessor.Error{Code: lessor.CodeLeaseNotFound, Detail: "the lease is over: " + reason, EndedReason: reason}
		}
	}
	return nil
}

func unexplained(err error) bool {
	var e *lessor.Error
	return errors.As(err, &e) && e.Code == lessor.CodeLeaseNotFound && e.EndedReason == ""
}
