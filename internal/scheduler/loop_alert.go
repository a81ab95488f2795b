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

// brakeEnd is when the floor that the brake set ends, if an alert about it may be open then; else 0.
func (l *loop) brakeEnd() lessor.Instant {
	until := l.fold.Serving.BrakeUntil
	if until == l.braked {
		return 0
	}
	return max(until, 1) // a clock that was set back has ended the brake
}

// brakeIsOver reports whether the alert about the last brake is to be cleared.
func (l *loop) brakeIsOver() bool {
	end := l.brakeEnd()
	return end != 0 && end <= l.fold.Serving.LastBeat
}

func (l *loop) clearBrake(ctx context.Context) error {
	until := l.fold.Serving.BrakeUntil
	_, err := l.transact(ctx, 0, func(p *pass) error {
		if err := p.gate(ctx); err != nil || p.serving.BrakeUntil > p.now {
			return err
		}
		return p.clear(ctx, lessor.AlertMassExpiry, massExpiry, lessor.TenantID{})
	})
	if err == nil {
		l.braked = until
	}
	return err
}

// storeSubject is the subject of the alert about a store that went back.
const storeSubject = "store"

// sameLoss is how long after an alert another node's report of a store that went back counts as the same event.
const sameLoss = time.Minute

// checkWentBack asks the store whether it went back.
func (l *loop) checkWentBack() {
	if l.wentBack == "" {
		l.wentBack = l.store.WentBack()
	}
}

// raiseWentBack raises the alert about a store that went back. An older one is about an earlier event, and ends.
func (l *loop) raiseWentBack(ctx context.Context) error {
	_, err := l.transact(ctx, 0, func(p *pass) error {
		if err := p.gate(ctx); err != nil { // another node may be about to say the same
			return err
		}
		open, err := p.tx.OpenAlert(ctx, lessor.AlertStoreWentBack, storeSubject, lessor.TenantID{})
		if err != nil {
			return err
		}
		if open != nil && p.now.Sub(open.RaisedAt) > sameLoss {
			if err := p.clear(ctx, lessor.AlertStoreWentBack, storeSubject, lessor.TenantID{}); err != nil {
				return err
			}
		}
		return p.raise(ctx, lessor.AlertStoreWentBack, storeSubject, lessor.TenantID{},
			"the store went back to an older state, and newer changes that were acknowledged may be lost: "+l.wentBack)
	})
	if err == nil {
		l.wentBack = ""
	}
	return err
}

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

// maxMissing is the longest time without a worker that raises no alert: a job may run for days.
const maxMissing = time.Hour

// expect plans a check that a worker has requested the job of a tick within its timeout.
func (l *loop) expect(spec *rules.Spec, now lessor.Instant) {
	if len(l.expected) == maxExpected {
		return
	}
	of := alertOf{lessor.AlertNoWorker, spec.Lane.Tenant, spec.Lane.Definition}
	within := min(spec.MaxRuntime, maxMissing)
	at := now.Add(within)
	l.expected = append(l.expected, expected{job: spec.ID, of: of, typ: spec.Lane.Type, at: at, within: within})
	if l.expectAt == 0 || at < l.expectAt {
		l.expectAt = at
	}
}

// unclaimed reports whether t is the job of a definition that was never granted.
func unclaimed(f *fold.Fold, t rules.Turn) bool {
	return t.Fence == 0 && f.Index.Known(t.Lane) && f.Index.Lane(t.Lane).Definition != ""
}

// expectAgain watches the jobs that were queued before this process began, from now on.
func (l *loop) expectAgain(ctx context.Context, v View, jobs []lessor.JobID) error {
	if l.expectsOld {
		return nil
	}
	specs, err := v.Specs(ctx, jobs)
	if err != nil {
		return err
	}
	for _, spec := range specs {
		l.expect(spec, v.Now())
	}
	l.expectsOld = true
	return nil
}

// missingDue reports whether a worker should have asked for a job by now.
func (l *loop) missingDue() bool { return l.expectAt != 0 && l.expectAt <= l.fold.Serving.LastBeat }

// raiseMissing raises an alert about each definition whose job no worker has asked for in time. Until the alerts are
// committed, they stay due.
func (l *loop) raiseMissing(ctx context.Context) error {
	now := l.fold.Serving.LastBeat
	var due []expected
	for _, e := range l.expected {
		if e.at <= now && !l.workers.asks(e.typ, e.of.tenant, now) {
			due = append(due, e)
		}
	}
	if len(due) > 0 {
		if _, err := l.transact(ctx, 0, func(p *pass) error { return p.raiseMissing(ctx, due) }); err != nil {
			return err
		}
	}
	l.expectAt = 0
	l.expected = slices.DeleteFunc(l.expected, func(e expected) bool {
		if e.at > now && (l.expectAt == 0 || e.at < l.expectAt) {
			l.expectAt = e.at
		}
		return e.at <= now
	})
	return nil
}

func (p *pass) raiseMissing(ctx context.Context, due []expected) error {
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
		st := standings[e.job]
		if st == nil || st.Place == rules.Ended || st.Turn.Fence != 0 || st.Place == rules.Leased {
			continue
		}
		err := p.raiseAbout(ctx, e.of, 1, fmt.Sprintf(
			"no worker has asked for %s, the handler of %s, within its timeout", e.typ, e.of.id,
		))
		if err != nil {
			return err
		}
	}
	return nil
}

// alertOf names an alert about a definition for longer than the definition lives: its id may pass to another tenant.
type alertOf struct {
	kind   lessor.AlertKind
	tenant lessor.TenantID
	id     string
}

// loadAlerted reads which alerts are open that this node may have to clear.
func (l *loop) loadAlerted(ctx context.Context, v View) error {
	clear(l.alerted)
	for q := (AlertQuery{Open: true, Limit: pageLimit}); ; {
		page, err := v.AlertList(ctx, q)
		if err != nil {
			return err
		}
		for i := range page {
			switch a := &page[i]; a.Kind {
			case lessor.AlertNoWorker, lessor.AlertMissedTicks:
				l.alerted[alertOf{a.Kind, a.TenantID, a.Subject}] = true
			case lessor.AlertJobFailed:
				l.failing.adopt(a)
			}
		}
		if len(page) < pageLimit {
			return nil
		}
		q.After = &page[len(page)-1].ID
	}
}
