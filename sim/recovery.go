package main

import (
	"context"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// recover does what the monitor of long jobs does to a lease: watch it, note that its command lives, or end it.
func (o *operator) recover() {
	all, err := call(o.client, "watched", func(ctx context.Context, n *node) ([]scheduler.Watched, error) {
		return n.WorkspaceLeases(ctx, "workspace-1")
	})
	if err != nil || len(all) == 0 {
		return
	}
	l := all[o.random.IntN(len(all))].Held
	b, sent := o.world.known, o.world.now
	switch o.random.IntN(4) {
	case 0:
		o.hold(l.ID, time.Duration(o.random.IntN(60))*time.Second)
		return
	case 1:
		b.watching(l.ID, 0)
		_ = o.do("reattach", func(ctx context.Context, n *node) error { return n.Reattach(ctx, l.ID) })
		return
	case 2:
		b.tried[act{l.ID.UUID, rules.ReasonHeartbeatStopped}] = true
		err = o.do("end dead", func(ctx context.Context, n *node) error {
			return n.EndDead(ctx, o.caller, l.ID, rules.DeathMarked)
		})
	default:
		b.tried[act{l.ID.UUID, "completed"}] = true
		d := lessor.Completion{WorkerID: &l.Worker, Status: new("completed")}
		err = o.do("conclude", func(ctx context.Context, n *node) error { return n.Conclude(ctx, o.caller, l.ID, d) })
	}
	if err == nil {
		b.over(b.leases[l.ID], sent)
	}
}

// watching notes until when a lease is watched; 0 = nobody knows.
func (b *knowledge) watching(id lessor.LeaseID, until time.Duration) {
	if l := b.leases[id]; l != nil {
		l.watch = until
	}
}

// resume continues a job that failed for good as another one.
func (o *operator) resume() {
	page, err := call(o.client, "failed", func(ctx context.Context, n *node) ([]lessor.Job, error) {
		page, _, err := n.Jobs(ctx, o.caller, lessor.JobFilter{State: lessor.Failed, Limit: 10})
		return page, err
	})
	if err != nil || len(page) == 0 {
		return
	}
	job := page[o.random.IntN(len(page))]
	fromCheckpoint := o.chance(50)
	_ = o.do("resume", func(ctx context.Context, n *node) error {
		o.world.known.copied(job.Payload)
		spec, err := n.Resumable(ctx, o.caller, job.ID)
		if err != nil {
			return err
		}
		return n.Resume(ctx, o.caller, job.ID, spec.ID, fromCheckpoint)
	})
}

// lists reads everything that can be listed, of all tenants or of one (P14).
func (o *operator) lists() {
	c := o.caller
	if o.chance(50) {
		c.Tenant = new(tenant(1 + o.random.IntN(o.world.plan.Tenants)))
	}
	foreign := func(t lessor.TenantID, what string) {
		if c.Tenant != nil && t != *c.Tenant {
			o.world.fail("P14", "tenant %v sees %s of tenant %v", *c.Tenant, what, t)
		}
	}
	id, now := o.id(), o.world.clock()
	for _, read := range []func(ctx context.Context, n *node) error{
		func(ctx context.Context, n *node) error {
			jobs, _, err := n.Jobs(ctx, c, lessor.JobFilter{Limit: 20})
			for i := range jobs {
				foreign(jobs[i].TenantID, "a job")
			}
			return err
		},
		func(ctx context.Context, n *node) error {
			_, _, err := n.Runs(ctx, c, lessor.RunFilter{Limit: 20})
			return err
		},
		func(ctx context.Context, n *node) error {
			locks, _, err := n.Locks(ctx, c, nil, 20, "")
			for i := range locks {
				foreign(locks[i].TenantID, "a lock")
			}
			return err
		},
		func(ctx context.Context, n *node) error {
			if _, err := n.Status(ctx, c); err != nil {
				return err
			}
			_, err := n.Workers(ctx, c)
			return err
		},
		func(ctx context.Context, n *node) error {
			if _, err := n.NextTicks(ctx, c, id, 5); err != nil {
				return err
			}
			_, _, err := n.Ticks(ctx, c, id, lessor.TickFilter{From: now.Add(-time.Hour), To: now, Limit: 50})
			return err
		},
	} {
		_ = o.do("list", read)
	}
}

// alerts reads the open alerts and acknowledges one.
func (o *operator) alerts() {
	page, err := call(o.client, "alerts", func(ctx context.Context, n *node) ([]lessor.Alert, error) {
		page, _, err := n.Alerts(ctx, o.caller, lessor.AlertFilter{Open: true, Limit: 20})
		return page, err
	})
	if err != nil || len(page) == 0 {
		return
	}
	id := page[o.random.IntN(len(page))].ID
	_ = o.do("acknowledge", func(ctx context.Context, n *node) error {
		_, err := n.Acknowledge(ctx, o.caller, id)
		return err
	})
}
