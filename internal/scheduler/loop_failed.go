package scheduler

import (
	"context"
	"sync"

	"lessor"
	"lessor/internal/rules"
)

// maxFailing bounds the types whose failures are counted at once; jobs of further types fail untold.
const maxFailing = 1000

// typeOf names a type of a tenant's jobs.
type typeOf struct {
	tenant lessor.TenantID
	typ    string
}

// failing counts the jobs that failed for good since people were last told, by any goroutine. It is told in a transaction after that of
// the failures, so that it costs them nothing; a node that dies between the two tells nobody.
type failing struct {
	mu     sync.Mutex
	counts map[typeOf]rules.Failures
	until  map[typeOf]lessor.Instant // when the alert that is open about a type ends
	nextAt lessor.Instant            // when there is something to tell; 0 = nothing
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

// plan finds out when there is something to tell: a failure of a type about which no alert is open, at once, or the end of one.
func (f *failing) plan() {
	f.nextAt = 0
	for of := range f.counts {
		if f.until[of] == 0 {
			f.nextAt = 1
			return
		}
	}
	for _, at := range f.until {
		if f.nextAt == 0 || at < f.nextAt {
			f.nextAt = at
		}
	}
}

// adopt takes over an alert that is open, so that it is cleared whoever raised it.
func (f *failing) adopt(a *lessor.Alert) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noteAlert(typeOf{a.TenantID, a.Subject}, a)
	f.plan()
}

func (f *failing) noteAlert(of typeOf, a *lessor.Alert) {
	delete(f.until, of)
	if a != nil && a.ClearedAt == 0 {
		if f.until == nil {
			f.until = map[typeOf]lessor.Instant{}
		}
		f.until[of] = a.RaisedAt.Add(rules.FailedEvery)
	}
}

// setBack has alerts end in time that were raised on a clock which has since been set back.
func (f *failing) setBack(now lessor.Instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for of, at := range f.until {
		f.until[of] = min(at, now.Add(rules.FailedEvery))
	}
	f.plan()
}

func (f *failing) next() lessor.Instant {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nextAt
}

// due returns what is to be told at now.
func (f *failing) due(now lessor.Instant) map[typeOf]rules.Failures {
	f.mu.Lock()
	defer f.mu.Unlock()
	due := map[typeOf]rules.Failures{}
	for of, n := range f.counts {
		if f.until[of] == 0 {
			due[of] = n
		}
	}
	for of, at := range f.until {
		if at <= now {
			due[of] = f.counts[of]
		}
	}
	return due
}

// done forgets what was told; alerts are those that people were told with, nil where there was none.
func (f *failing) raised(told map[typeOf]rules.Failures, alerts map[typeOf]*lessor.Alert) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for of, n := range told {
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

// tellFailed raises and clears the alerts about jobs that failed for good. Nodes do so one after the other: they count into one alert.
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

func (p *pass) raiseFailed(ctx context.Context, of typeOf, n rules.Failures) (*lessor.Alert, error) {
	open, err := p.tx.OpenAlert(ctx, lessor.AlertJobFailed, of.typ, of.tenant)
	if err != nil {
		return nil, err
	}
	a, changed, told := rules.FailedAlert(open, n, of.typ, p.now)
	switch {
	case !changed:
		return open, nil
	case open == nil:
		a.ID, a.TenantID = lessor.AlertID{UUID: newUUID()}, of.tenant
	}
	if told {
		return &a, p.saveAlert(ctx, a)
	}
	return &a, p.tx.SaveAlerts(ctx, []lessor.Alert{a})
}
