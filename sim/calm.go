package main

import (
	"context"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// patience is how long after the end of all traffic and faults everything must have ended. The longest that anything
// waits is a run_at, after the clock was set back by an hour or two.
const patience = 4 * time.Hour

// calm ends traffic and faults, and waits until every job has ended (P8) and every node knows it.
func (w *world) calm() {
	w.trace.say(w, "world", "calm", "")
	w.quiet = true
	w.heal()
	w.tempo = time.Second
	ready := false
	w.spawn("healer", nil, func(t *task) {
		c := w.client(t, scheduler.Caller{Actor: "healer"})
		t.sleep(time.Minute) // until what was on its way has arrived
		for !c.unblock() {
			c.sleep(time.Second)
		}
		ready = true
	})
	for end := w.now + patience; ; {
		until := w.now + 5*time.Second
		for w.step(until) {
		}
		if w.failure != nil {
			return
		}
		w.now = until
		left := w.left()
		if ready && left == "" {
			break
		}
		if w.now >= end {
			w.fail("P8", "after %v without faults: %s", patience, left)
		}
	}
	w.checkAnswered()
	w.spawn("patrol", nil, func(t *task) {
		for _, n := range w.nodes {
			w.drifts(t, n)
		}
	})
	for until := w.now + 5*time.Second; w.step(until); {
	}
}

// checkAnswered checks that no node has left a call unanswered (P8). No caller waits for longer than 30 s.
func (w *world) checkAnswered() {
	for _, n := range w.nodes {
		for _, t := range n.waiting {
			if t.in == n && w.now-t.inAt > time.Minute {
				w.fail("P8", "%s has not answered a call of %s since %v", n.name, t.name, t.inAt)
			}
		}
	}
}

// left describes the first jobs that have not ended; "" if all have.
func (w *world) left() (what string) {
	say := func(format string, args ...any) {
		if len(what) < 800 {
			what += fmt.Sprintf(format, args...)
		}
	}
	w.read(func(v scheduler.View) error {
		err := v.EachLease(ctx, func(h *rules.Held) error {
			say("job %v is leased by %s: %+v at %v; ", h.Turn.Job, h.Worker, h.Life, v.Now())
			return nil
		})
		if err != nil {
			return err
		}
		err = v.EachQueued(ctx, func(t rules.Turn) error {
			say("job %v of lane %d is queued after %d attempts; ", t.Job, t.Lane, t.Attempt)
			return nil
		})
		if err != nil {
			return err
		}
		at, err := v.NextDue(ctx)
		if at != 0 {
			say("a job waits until %v, it is %v", at, v.Now())
		}
		return err
	})
	return what
}

// unblock removes everything that an operator did to keep jobs from running, and reports whether all of it is gone.
func (c *client) unblock() bool {
	list, err := call(c, "definitions", func(ctx context.Context, n *node) ([]lessor.Definition, error) {
		page, _, err := n.Definitions(ctx, c.caller, lessor.DefinitionFilter{Limit: 100})
		return page, err
	})
	if err != nil {
		return false
	}
	acts := []func(ctx context.Context, n *node) error{
		func(ctx context.Context, n *node) error {
			_, err := n.SetDraining(ctx, c.caller, false)
			return err
		},
		func(ctx context.Context, n *node) error {
			_, err := n.SetCapacity(ctx, c.caller, lessor.CapacityAsk{
				TotalUnits: lessor.Change[int64]{Reset: true}, Busy: lessor.SetTo(int64(0)),
			})
			return err
		},
	}
	for i := range c.world.plan.Tenants + 1 {
		acts = append(acts, func(ctx context.Context, n *node) error { return n.unpause(ctx, c, tenant(i)) })
	}
	for i := range list {
		id := list[i].JobID
		acts = append(acts, func(ctx context.Context, n *node) error { return n.DeleteDefinition(ctx, c.caller, id) })
	}
	for _, act := range acts {
		if c.do("unblock", act) != nil {
			return false
		}
	}
	return true
}

// unpause lets a tenant's jobs run.
func (n *node) unpause(ctx context.Context, c *client, id lessor.TenantID) error {
	reset := lessor.TenantAsk{MaxConcurrency: lessor.Change[int64]{Reset: true}, Paused: lessor.SetTo(false)}
	if _, err := n.SetTenant(ctx, c.caller, id, reset); err != nil {
		return err
	}
	for _, class := range classes {
		if _, err := n.SetClass(ctx, c.caller, id, class, reset); err != nil {
			return err
		}
	}
	return nil
}
