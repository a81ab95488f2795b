package scheduler

import (
	"context"
	"sync"

	"lessor"
	"lessor/internal/rules"
)

// maxFailing bounds the types whose failures are counted at once; jobs of further types raise no alert.
const maxFailing = 1000

// typeOf names a type of a tenant's jobs.
type typeOf struct {
	tenant lessor.TenantID
	typ    string
}

// failing counts the jobs that failed for good since the last alert about them. It is safe for every goroutine. The
// alert is raised in a later transaction, so that it costs the failures nothing; if the node dies between the two, no
// alert is raised.
type failing struct {
	mu     sync.Mutex
	counts map[typeOf]rules.Failures
	open   map[typeOf]collecting // the alerts that are open, as far as this node knows
	nextAt lessor.Instant        // when an alert is to be raised or cleared; 0 = never
}

// collecting is an open alert, which collects failures until it is cleared.
type collecting struct {
	alert lessor.AlertID
	until lessor.Instant
}

// dueFailures are the failures to count into an alert: the open one, or last if another node has cleared it.
type dueFailures struct {
	rules.Failures
	last lessor.AlertID
}

// failedJob is a job that failed for good.
type failedJob struct {
	of  typeOf
	job lessor.JobID
}

// failures finds the jobs that fail for good among moves.
func (p *pass) failures(moves []Move) {
	if !p.l.cfg.FailedJobs {
		return
	}
	for i := range moves {
		if m := &moves[i]; m.To == rules.Ended && rules.FailedForGood(m.Done.State) {
			turn := &m.Done.Attempt.Turn
			l := p.l.fold.Index.Lane(turn.Lane)
			p.failed = append(p.failed, failedJob{typeOf{l.Tenant, l.Type}, turn.Job})
		}
	}
}

// count adds jobs whose failure is durable.
func (f *failing) count(jobs []failedJob) {
	if len(jobs) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range jobs {
		if _, known := f.counts[j.of]; !known && len(f.counts) == maxFailing {
			continue
		}
		if f.counts == nil {
			f.counts = map[typeOf]rules.Failures{}
		}
		f.counts[j.of] = rules.Failures{Count: f.counts[j.of].Count + 1, Last: j.job}
	}
	f.plan()
}

// plan sets when the next alert is raised or cleared: at once after a failure of a type without an open alert, or when
// an open alert ends.
func (f *failing) plan() {
	f.nextAt = 0
	for of := range f.counts {
		if _, open := f.open[of]; !open {
			f.nextAt = 1
			return
		}
	}
	for _, c := range f.open {
		if f.nextAt == 0 || c.until < f.nextAt {
			f.nextAt = c.until
		}
	}
}

// adopt takes over an alert that is open, so that it is cleared whichever node raised it.
func (f *failing) adopt(a *lessor.Alert) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noteAlert(typeOf{a.TenantID, a.Subject}, a)
	f.plan()
}

func (f *failing) noteAlert(of typeOf, a *lessor.Alert) {
	delete(f.open, of)
	if a != nil && a.ClearedAt == 0 {
		if f.open == nil {
			f.open = map[typeOf]collecting{}
		}
		f.open[of] = collecting{a.ID, a.RaisedAt.Add(rules.FailedEvery)}
	}
}

// setBack shortens alerts that were raised before the clock was set back, so that they end in time.
func (f *failing) setBack(now lessor.Instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for of, c := range f.open {
		c.until = min(c.until, now.Add(rules.FailedEvery))
		f.open[of] = c
	}
	f.plan()
}

func (f *failing) next() lessor.Instant {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nextAt
}

// due returns the failures that alerts are to be raised about at now.
func (f *failing) due(now lessor.Instant) map[typeOf]dueFailures {
	f.mu.Lock()
	defer f.mu.Unlock()
	due := map[typeOf]dueFailures{}
	for of, n := range f.counts {
		if _, open := f.open[of]; !open {
			due[of] = dueFailures{Failures: n}
		}
	}
	for of, c := range f.open {
		if c.until <= now {
			due[of] = dueFailures{f.counts[of], c.alert}
		}
	}
	return due
}

// raised forgets failures that were counted into alerts; an alert is nil where there was none.
func (f *failing) raised(counted map[typeOf]dueFailures, alerts map[typeOf]*lessor.Alert) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for of, n := range counted {
		left := f.counts[of]
		if left.Count -= n.Count; left.Count > 0 {
			f.counts[of] = left
		} else {
			delete(f.counts, of)
		}
		f.noteAlert(of, alerts[of])
	}
	f.plan()
}

func (l *loop) failedDue() bool {
	at := l.failing.next()
	return at != 0 && at <= l.fold.Serving.LastBeat
}

// raiseFailed raises and clears the alerts about jobs that failed for good. Nodes do so one after the other, and all
// count into one alert for each type and minute.
func (l *loop) raiseFailed(ctx context.Context) error {
	due := l.failing.due(l.fold.Serving.LastBeat)
	var alerts map[typeOf]*lessor.Alert
	_, err := l.transact(ctx, 0, func(p *pass) error {
		alerts = map[typeOf]*lessor.Alert{}
		if err := p.gate(ctx); err != nil {
			return err
		}
		for of, n := range due {
			a, err := p.raiseFailed(ctx, of, n)
			if err != nil {
				return err
			}
			alerts[of] = a
		}
		return nil
	})
	if err == nil {
		l.failing.raised(due, alerts)
	}
	return err
}

func (p *pass) raiseFailed(ctx context.Context, of typeOf, n dueFailures) (*lessor.Alert, error) {
	last, err := p.tx.OpenAlert(ctx, lessor.AlertJobFailed, of.typ, of.tenant)
	if err == nil && last == nil && !n.last.IsZero() {
		last, err = p.tx.Alert(ctx, n.last)
	}
	if err != nil {
		return nil, err
	}
	a, changed, notify := rules.FailedAlert(last, n.Failures, of.typ, p.now)
	switch {
	case !changed:
		return last, nil
	case a.ID.IsZero():
		a.ID, a.TenantID = lessor.AlertID{UUID: p.l.newUUID()}, of.tenant
	}
	if notify {
		return &a, p.saveAlert(ctx, a)
	}
	return &a, p.tx.SaveAlerts(ctx, []lessor.Alert{a})
}
