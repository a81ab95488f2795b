package main

import (
	"context"
	"time"

	"lessor"
)

// explain asks why a job waits, and how an attempt of a failed job ended.
func (o *operator) explain() {
	as := o.caller
	if o.chance(30) {
		as.Tenant = new(tenant(1 + o.random.IntN(o.world.plan.Tenants)))
	}
	state := []lessor.State{lessor.Queued, lessor.Failed, lessor.Running}[o.random.IntN(3)]
	page, err := call(o.client, "jobs", func(ctx context.Context, n *node) ([]lessor.Job, error) {
		page, _, err := n.Jobs(ctx, as, lessor.JobFilter{State: state, Limit: 30})
		return page, err
	})
	for range min(3, len(page)) {
		job := &page[o.random.IntN(len(page))]
		if err != nil {
			return
		}
		_ = o.do("explain", func(ctx context.Context, n *node) error {
			if state != lessor.Failed {
				_, err := n.Why(ctx, as, job.ID)
				return err
			}
			run, err := n.RunAudit(ctx, as, job.ID)
			if err != nil || run.LastErrorRef == "" {
				return err
			}
			_, err = n.RunError(ctx, as, run.LastErrorRef)
			return err
		})
	}
}

// browseLeases reads the leases and the locks, page by page.
func (o *operator) browseLeases() {
	_, _ = pages(o.client, "leases", func(ctx context.Context, n *node, at string) ([]lessor.LeaseID, string, error) {
		list, next, err := n.Leases(ctx, o.caller, "", 3, at)
		return names(list, next, err, func(l *lessor.Lease) lessor.LeaseID { return l.ID })
	})
	_, _ = pages(o.client, "locks", func(ctx context.Context, n *node, at string) ([]lessor.JobID, string, error) {
		list, next, err := n.Locks(ctx, o.caller, nil, 1, at)
		return names(list, next, err, func(l *lessor.Lock) lessor.JobID { return l.RunID })
	})
}

// session logs a browser in, looks at the session, and ends some of them. What was begun is found, and what has ended
// is not.
func (o *operator) session() {
	id, key := lessor.TokenID{UUID: tenant(9).UUID}, [32]byte{byte(o.random.IntN(30)), 1}
	sent := o.world.now
	check := func(want bool) {
		found, err := call(o.client, "session", func(ctx context.Context, n *node) (bool, error) {
			_, found, err := n.Session(ctx, id, key)
			return found, err
		})
		if err == nil && found != want && !o.world.known.stale(sent) && !o.world.plan.has(Messages) {
			o.world.fail("P1", "a session is there: %t, want %t", found, want)
		}
	}
	err := o.do("session", func(ctx context.Context, n *node) error {
		return n.BeginSession(ctx, id, key, time.Duration(1+o.random.IntN(600))*time.Second)
	})
	if err != nil {
		return
	}
	if check(true); !o.chance(50) {
		return
	}
	err = o.do("session", func(ctx context.Context, n *node) error { return n.EndSession(ctx, id, key) })
	if err == nil {
		check(false)
	}
}
