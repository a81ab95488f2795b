package scheduler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// maxExpected bounds the jobs of ticks that are watched for a worker.
const maxExpected = 10_000

// expected is a job of a tick for which some worker should ask before long.
type expected struct {
	job    lessor.JobID
	of     alertOf
	typ    string
	at     lessor.Instant
	within time.Duration
}

// expect plans to look whether a worker has asked for the job of a tick within its timeout.
func (l *loop) expect(spec *rules.Spec, now lessor.Instant) {
	if len(l.expected) == maxExpected {
		return
	}
	of := alertOf{lessor.AlertNoWorker, spec.Lane.Tenant, spec.Lane.Definition}
	l.expected = append(l.expected, expected{job: spec.ID, of: of, typ: spec.Lane.Type, at: now.Add(spec.MaxRuntime), within: spec.MaxRuntime})
	if at := now.Add(spec.MaxRuntime); l.expectAt == 0 || at < l.expectAt {
		l.expectAt = at
	}
}

// unclaimed reports whether t is the job of a definition that was never granted.
func unclaimed(f *fold.Fold, t rules.Turn) bool {
	return t.Fence == 0 && f.Index.Known(t.Lane) && f.Index.Lane(t.Lane).Definition != ""
}

// expectAgain watches the jobs that were queued before this process began, from now on.
func (l *loop) expectAgain(ctx context.Context, v View, jobs []lessor.JobID) error {
	if l.expects {
		return nil
	}
	specs, err := v.Specs(ctx, jobs)
	if err != nil {
		return err
	}
	for _, spec := range specs {
		l.expect(spec, v.Now())
	}
	l.expects = true
	return nil
}

// missDue reports whether a worker should have asked for a job by now.
func (l *loop) missDue() bool { return l.expectAt != 0 && l.expectAt <= l.fold.Serving.LastBeat }

// miss raises an alert about each definition whose job nobody has asked for in time.
func (l *loop) miss(ctx context.Context) error {
	now := l.fold.Serving.LastBeat
	var due []expected
	l.expectAt = 0
	l.expected = slices.DeleteFunc(l.expected, func(e expected) bool {
		if e.at > now {
			if l.expectAt == 0 || e.at < l.expectAt {
				l.expectAt = e.at
			}
			return false
		}
		if !l.workers.asks(e.typ, e.of.tenant, now) {
			due = append(due, e)
		}
		return true
	})
	if len(due) == 0 {
		return nil
	}
	_, err := l.transact(ctx, 0, func(p *pass) error { return p.miss(ctx, due) })
	return err
}

func (p *pass) miss(ctx context.Context, due []expected) error {
	if err := p.gate(ctx); err != nil { // another node may be about to say the same
		return err
	}
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
		err := p.alert(ctx, e.of, 1, fmt.Sprintf("no worker has asked for %s, the handler of %s, within its timeout", e.typ, e.of.id))
		if err != nil {
			return err
		}
	}
	return nil
}

// met clears the alerts about definitions for which a worker has come.
func (r *round) met(ctx context.Context) error {
	for i := range r.taken {
		lane := &r.taken[i].spec.Lane
		if lane.Definition == "" {
			continue
		}
		if err := r.p.unalert(ctx, alertOf{lessor.AlertNoWorker, lane.Tenant, lane.Definition}); err != nil {
			return err
		}
	}
	return nil
}
