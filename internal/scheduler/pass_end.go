package scheduler

import (
	"context"
	"errors"

	"lessor"
	"lessor/internal/rules"
)

// end decides the ends of this pass. A call that repeats the one that ended the lease is answered the same.
func (p *pass) end(ctx context.Context, calls []*endCall) error {
	if len(calls) == 0 {
		return nil
	}
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
			p.endAs(&c.caller, &c.ends[i], specs, before)
		}
	}
	return nil
}

// endAs ends one lease, or finds that the same call ended it before.
func (p *pass) endAs(c *Caller, e *ending, specs map[lessor.JobID]*rules.Spec, before map[lessor.LeaseID]LeaseEnd) {
	e.err = p.endOne(c, e, specs)
	if errors.Is(e.err, lessor.ErrLeaseNotFound) && p.repeated(c, e, before) {
		e.err = nil
	}
}

// repeated reports whether the lease that e names was ended by the same call of the same worker.
func (p *pass) repeated(c *Caller, e *ending, before map[lessor.LeaseID]LeaseEnd) bool {
	was, ok := p.ended[e.id]
	if !ok {
		was, ok = before[e.id]
	}
	same := was.Said == e.end.Said && was.Worker == e.worker
	return ok && same && c.sees(was.Tenant) && e.end.Said != rules.SaidNothing
}

func (p *pass) endOne(c *Caller, e *ending, specs map[lessor.JobID]*rules.Spec) error {
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
	report := e.end.Report
	if e.end.Outcome == rules.OutcomeReleased {
		report = rules.Released(h, &e.end, p.reportOf(h.Turn.Job), report)
	}
	next, err := rules.Conclude(h, e.end, p.l.retries(specs[h.Turn.Job]), p.now, p.l.cfg.Random())
	if err != nil {
		return err
	}
	if next.Wait.State == lessor.Waiting {
		report.Question = rules.Asked(h, e.end, p.now)
	}
	if !report.Empty() {
		p.report(h, report)
	}
	e.held = h
	p.l.workers.beat(c, h, p.now)
	p.endLease(h, next)
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

// endLease takes a job from its lease to where it goes next.
func (p *pass) endLease(h *rules.Held, n rules.Next) {
	a := n.Attempt
	if n.Done != nil {
		a = &n.Done.Attempt
	}
	p.ended[h.ID] = LeaseEnd{Worker: h.Worker, Tenant: h.Tenant, Outcome: a.Outcome, Said: a.Said, Reason: a.Reason}
	p.leases[h.ID] = nil
	delete(p.changed, h.ID)
	p.moves = append(p.moves, Move{
		From: rules.Leased, To: n.Place, Turn: n.Turn, Held: h, Wait: n.Wait, Attempt: n.Attempt, Done: n.Done,
	})
	if h.Journaled() {
		p.report(h, rules.Report{Entries: &h.Journal.Entries})
		p.l.keys.drop(h)
	}
	p.l.fold.Free(h)
	if rules.TakenAway(a) {
		p.l.fold.TakeAway(h, p.now)
	}
	p.place(n)
	p.verdict(h, a.Outcome)
	p.stats.Ended = append(p.stats.Ended, EndedAttempt{a.Outcome, p.now.Sub(h.IssuedAt)})
	p.publish(h.Turn.Job, h.Tenant, func() lessor.Event { return rules.Concluded(h, n) })
}

// verdict notes how an attempt of a definition's job ended.
func (p *pass) verdict(h *rules.Held, o rules.Outcome) {
	if d := p.l.fold.Index.Lane(h.Turn.Lane).Definition; d != "" {
		v := verdict{definition: d, tenant: h.Tenant, job: h.Turn.Job, lease: h.ID, outcome: o}
		p.verdicts = append(p.verdicts, v)
	}
}

// place brings the fold up to date with where a job went.
func (p *pass) place(n rules.Next) {
	switch n.Place {
	case rules.InQueue:
		p.l.fold.Enqueue(n.Turn)
	case rules.Delayed:
		p.l.fold.Delay(n.Wait.Until)
		if n.Wait.State == lessor.Waiting {
			p.l.fold.Wait(1)
		}
	}
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

// late are the calls of a pass on leases that have lapsed and were not ended yet. They are answered when it is decided
// whether the brake is pulled, which would give the leases another ttl: a worker that learns that its lease is over
// stops, so the lease must not live on.
type late struct {
	leases map[lessor.LeaseID]struct{}
	beats  []lateBeat
	ends   []lateEnd
}

type lateBeat struct {
	caller *Caller
	beat   *beat
}

type lateEnd struct {
	caller *Caller
	end    *ending
	specs  map[lessor.JobID]*rules.Spec
}

// tooLate reports whether h has lapsed or run too long, and records that a call named it.
func (p *pass) tooLate(h *rules.Held) bool {
	if h == nil || rules.Over(h, p.now, p.serving) == "" {
		return false
	}
	if p.late.leases == nil {
		p.late.leases = map[lessor.LeaseID]struct{}{}
	}
	p.late.leases[h.ID] = struct{}{}
	return true
}

// answerLate answers the late calls under the floor that was decided.
func (p *pass) answerLate() {
	beats, ends := p.late.beats, p.late.ends
	for _, b := range beats {
		p.beatOne(b.caller, b.beat)
	}
	for _, e := range ends {
		p.endAs(e.caller, e.end, e.specs, nil)
	}
}
