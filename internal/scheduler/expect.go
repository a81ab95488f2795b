package scheduler

import (
	"context"
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// maxExpected bounds the jobs of ticks that are watched for a worker.
const maxExpected = 10_000

// definitionOf names a definition for longer than it lives: its id may pass to another tenant.
type definitionOf struct {
	tenant lessor.TenantID
	id     string
}

// expected is a job of a tick for which some worker should ask before long.
type expected struct {
	job        lessor.JobID
	definition string
	tenant     lessor.TenantID
	typ        string
	at         lessor.Instant
}

// expect plans to look whether a worker has asked for the job of a tick within its timeout.
func (f *fold) expect(spec *rules.Spec, now lessor.Instant) {
	if len(f.expected) < maxExpected {
		f.expected = append(f.expected, expected{
			job: spec.ID, definition: spec.Lane.Definition, tenant: spec.Lane.Tenant, typ: spec.Lane.Type, at: now.Add(spec.MaxRuntime),
		})
	}
}

// expectAt is when a worker should have asked for the next job; 0 = none is watched.
func (f *fold) expectAt() (next lessor.Instant) {
	for _, e := range f.expected {
		if next == 0 || e.at < next {
			next = e.at
		}
	}
	return next
}

func (s *Scheduler) missDue() bool {
	at := s.fold.expectAt()
	return at != 0 && at <= s.fold.serving.LastBeat
}

// miss raises an alert about each definition whose job nobody has asked for in time.
func (s *Scheduler) miss(ctx context.Context) error {
	f, now := s.fold, s.fold.serving.LastBeat
	var due []expected
	f.expected = slices.DeleteFunc(f.expected, func(e expected) bool {
		if e.at > now {
			return false
		}
		if !s.workers.asks(e.typ, e.tenant, now) {
			due = append(due, e)
		}
		return true
	})
	if len(due) == 0 {
		return nil
	}
	_, err := s.transact(ctx, 0, func(p *pass) error { return p.miss(ctx, due) })
	return err
}

func (p *pass) miss(ctx context.Context, due []expected) error {
	ids := make([]lessor.JobID, len(due))
	for i, e := range due {
		ids[i] = e.job
	}
	standings, err := p.tx.Standings(ctx, ids)
	if err != nil {
		return err
	}
	for _, e := range due {
		if st := standings[e.job]; st == nil || st.Place == rules.Ended || st.Turn.Fence != 0 || st.Place == rules.Leased {
			continue
		}
		p.s.fold.missed[definitionOf{e.tenant, e.definition}] = true
		err := p.raise(ctx, lessor.AlertNoWorker, e.definition, e.tenant, fmt.Sprintf("no worker has asked for %s, the handler of %s, within its timeout", e.typ, e.definition))
		if err != nil {
			return err
		}
	}
	return nil
}

// met clears the alerts about definitions for which a worker has come.
func (r *round) met(ctx context.Context) error {
	missed := r.p.s.fold.missed
	for i := range r.taken {
		of := definitionOf{r.taken[i].spec.Lane.Tenant, r.taken[i].spec.Lane.Definition}
		if of.id == "" || !missed[of] {
			continue
		}
		delete(missed, of)
		if err := r.p.clear(ctx, lessor.AlertNoWorker, of.id, of.tenant); err != nil {
			return err
		}
	}
	return nil
}

// loadMissed reads for which definitions a worker is missing.
func (f *fold) loadMissed(ctx context.Context, v View) error {
	open, err := v.AlertList(ctx, AlertQuery{Open: true, Limit: pageLimit})
	for _, a := range open {
		if a.Kind == lessor.AlertNoWorker {
			f.missed[definitionOf{a.TenantID, a.Subject}] = true
		}
	}
	return err
}
