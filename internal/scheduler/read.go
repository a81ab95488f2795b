package scheduler

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"lessor"
	"lessor/internal/rules"
)

// view runs fn on a snapshot and turns a store's fault into what a caller can act on.
func (s *Scheduler) view(ctx context.Context, verb string, fn func(View) error) error {
	if err := s.store.View(ctx, fn); err != nil {
		return storeRefusal(fmt.Errorf("%s: %w", verb, err))
	}
	return nil
}

// servingOf is what a snapshot says about the end of leases. If no node serves, they end as if service began now: none
// ends sooner.
func servingOf(v View) rules.Serving {
	return rules.Serve(v.Serving(), rules.ClockReading{}, rules.ClockReading{Wall: v.Now()})
}

// Job returns one job.
func (s *Scheduler) Job(ctx context.Context, c Caller, id lessor.JobID) (lessor.Job, error) {
	var st *rules.Standing
	err := s.view(ctx, "load job", func(v View) error {
		all, err := v.Standings(ctx, []lessor.JobID{id})
		st = all[id]
		return err
	})
	if err != nil {
		return lessor.Job{}, err
	}
	if st == nil || !c.sees(st.Spec.Lane.Tenant) {
		return lessor.Job{}, lessor.ErrJobNotFound
	}
	job := rules.Show(st)
	if h := st.Held; c.Worker && h != nil && h.Taker != "" && h.Token != c.Token {
		job.LeaseID = nil // it would give access to the lease of another worker
	}
	return job, nil
}

// Jobs lists jobs, newest first, and the cursor of the next page ("" at the end).
func (s *Scheduler) Jobs(ctx context.Context, c Caller, f lessor.JobFilter) ([]lessor.Job, string, error) {
	q, err := s.listQuery(c, f)
	if err != nil {
		return nil, "", err
	}
	jobs := []lessor.Job{}
	err = s.view(ctx, "list jobs", func(v View) (err error) {
		jobs, q.After, err = listJobs(ctx, v, q)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return jobs, s.jobCursor(q.After), nil
}

// What the jobs of a page carry has at most this many bytes, unless it is one job. No more than listStep jobs are read
// at a time, so that not much more than that is read.
const (
	maxPageBytes = 16 << 20
	listStep     = 64
)

// listJobs reads a page of jobs and returns the cursor of the next, nil at the end.
func listJobs(ctx context.Context, v View, q ListQuery) ([]lessor.Job, *lessor.JobID, error) {
	jobs := make([]lessor.Job, 0, min(q.Limit, listStep))
	for bytes, limit := 0, q.Limit; ; {
		q.Limit = min(listStep, limit-len(jobs))
		page, err := v.List(ctx, q)
		if err != nil {
			return nil, nil, err
		}
		for _, st := range page.Standings {
			job := rules.Show(st)
			bytes += len(job.Payload) + len(job.Result) + len(job.Checkpoint)
			if n := len(jobs); n > 0 && bytes > maxPageBytes {
				return jobs, &jobs[n-1].ID, nil
			}
			jobs = append(jobs, job)
		}
		if q.After = page.Next; q.After == nil || len(page.Standings) < q.Limit || len(jobs) >= limit {
			return jobs, page.Next, nil // a store that has looked at enough returns fewer
		}
	}
}

// jobCursor is the cursor of a list that goes on behind a job, "" at the end. The job may be one that the caller may
// not know of: the last that was looked at.
func (s *Scheduler) jobCursor(last *lessor.JobID) string {
	if last == nil {
		return ""
	}
	return s.store.Seal().JobCursor(*last)
}

// behind reads a cursor of jobCursor; nil begins with the newest.
func (s *Scheduler) behind(cursor string) (*lessor.JobID, error) {
	if cursor == "" {
		return nil, nil
	}
	id, err := s.store.Seal().OpenJobCursor(cursor)
	return &id, err
}

func (s *Scheduler) listQuery(c Caller, f lessor.JobFilter) (ListQuery, error) {
	q := ListQuery{State: f.State, Type: f.Type, Tag: f.Tag, Tenant: f.Tenant, Limit: f.Limit}
	if c.Tenant != nil {
		if f.Tenant != nil && *f.Tenant != *c.Tenant {
			return q, &lessor.Error{Code: lessor.CodeForbidden, Detail: "this token is for another tenant"}
		}
		q.Tenant = c.Tenant
	}
	var err error
	if q.After, err = s.behind(f.Cursor); err != nil {
		return q, err
	}
	return q, rules.CheckList(f)
}

// Events returns a job's record, oldest first, and the cursor of the next page ("" at the end).
func (s *Scheduler) Events(
	ctx context.Context, c Caller, id lessor.JobID, limit int, after string,
) ([]lessor.Event, string, error) {
	if err := rules.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	skip := 0
	if after != "" {
		var err error
		if skip, err = strconv.Atoi(after); err != nil || skip < 0 {
			return nil, "", rules.BadCursor()
		}
	}
	var h *rules.History
	err := s.view(ctx, "load record", func(v View) error {
		all, err := v.Histories(ctx, []lessor.JobID{id})
		h = all[id]
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if h == nil || !c.sees(h.Standing.Spec.Lane.Tenant) {
		return nil, "", lessor.ErrJobNotFound
	}
	events := rules.Record(h)
	events = events[min(skip, len(events)):]
	if len(events) > limit {
		return events[:limit], strconv.Itoa(skip + limit), nil
	}
	return events, "", nil
}

// Leases lists live leases, newest first, and the cursor of the next page ("" at the end).
func (s *Scheduler) Leases(
	ctx context.Context, c Caller, worker string, limit int, after string,
) ([]lessor.Lease, string, error) {
	if err := rules.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	q := LeaseQuery{Worker: worker, Tenant: c.Tenant, Limit: limit + 1}
	if c.Worker {
		q.Token = &c.Token
	}
	var err error
	if q.After, err = s.leasePlace(after); err != nil {
		return nil, "", err
	}
	type lease struct {
		lessor.Lease
		place LeasePlace
	}
	cursor := func(l lease) string { return s.store.Seal().Cursor(l.place.A, l.place.B) }
	page, next, err := pageOf(ctx, s, "list leases", limit, cursor, func(v View) ([]lease, error) {
		list, err := v.LeaseList(ctx, q)
		return each(list, func(l ListedLease) lease {
			shown := rules.ShowLease(l.Held, v.Now(), servingOf(v))
			shown.Type = l.Type
			return lease{shown, l.Place}
		}), err
	})
	return each(page, func(l lease) lessor.Lease { return l.Lease }), next, err
}

// leasePlace reads a cursor of a list of leases; nil begins with the newest.
func (s *Scheduler) leasePlace(cursor string) (*LeasePlace, error) {
	if cursor == "" {
		return nil, nil
	}
	a, b, err := s.store.Seal().OpenCursor(cursor)
	return &LeasePlace{a, b}, err
}

// Backup writes a consistent copy of the store.
func (s *Scheduler) Backup(ctx context.Context, w io.Writer) error {
	if err := s.store.Backup(ctx, w); err != nil {
		return storeRefusal(fmt.Errorf("back up: %w", err))
	}
	return nil
}

// Check looks at the health of the store, and whether the fold still equals the tables.
func (s *Scheduler) Check(ctx context.Context) []Finding {
	findings := s.store.Check(ctx)
	drift := Finding{Name: "fold", OK: true, Detail: "counts in memory equal the tables"}
	if err := s.Drift(ctx); err != nil {
		drift = Finding{Name: "fold", Detail: err.Error()}
	}
	return append(findings, drift)
}

// Locks lists held locks, the last that was taken first, and the cursor of the next page ("" at the end).
func (s *Scheduler) Locks(
	ctx context.Context, c Caller, asked *lessor.TenantID, limit int, after string,
) ([]lessor.Lock, string, error) {
	if err := rules.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	q := LockQuery{Limit: limit + 1}
	var err error
	if q.Tenant, err = c.within(asked); err != nil {
		return nil, "", err
	}
	if q.After, err = s.leasePlace(after); err != nil {
		return nil, "", err
	}
	type lock struct {
		lessor.Lock
		place LeasePlace
	}
	cursor := func(l lock) string { return s.store.Seal().Cursor(l.place.A, l.place.B) }
	page, next, err := pageOf(ctx, s, "list locks", limit, cursor, func(v View) ([]lock, error) {
		list, err := v.LockList(ctx, q)
		return each(list, func(h ListedLease) lock {
			return lock{lessor.Lock{
				LockKey: h.LockKey, TenantID: h.Tenant, LockedBy: h.Worker, RunID: h.Turn.Job,
				LockedUntil: rules.Effective(h.Held, v.Now(), servingOf(v)),
			}, h.Place}
		}), err
	})
	return each(page, func(l lock) lessor.Lock { return l.Lock }), next, err
}
