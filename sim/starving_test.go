package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// TestLargeJobsGetTheirTurn: a large job gets its units beside an endless stream of small ones, though it needs
// all units, in worlds without faults. Each worker knows one node, and those of one node alone take large jobs: the
// other nodes must keep what becomes free, too.
func TestLargeJobsGetTheirTurn(t *testing.T) {
	const workers, rounds, within = 8, 3, 90 * time.Second // there are as many units as workers
	for _, nodes := range []int{1, 3} {
		for seed := uint64(1); seed <= 3; seed++ {
			w := newWorld(Plan{Seed: seed, Nodes: nodes, Handovers: 0.4, Latency: 2 * time.Millisecond}, nil)
			ready, granted := false, 0
			w.spawn("submitter", nil, func(t *task) {
				c := w.client(t, scheduler.Caller{Actor: "sim"})
				c.uncap(tenant(1))
				_ = c.do("capacity", func(ctx context.Context, n *node) error { // nothing fails in this world
					_, err := n.SetCapacity(ctx, c.caller, lessor.CapacityAsk{
						TotalUnits: lessor.SetTo(int64(workers + w.config.ReserveUnits)), Busy: lessor.SetTo(int64(0)),
					})
					return err
				})
				c.refill(tenant(1), 40)
				ready = true
			})
			for i := range workers {
				w.spawn(fmt.Sprintf("worker-%d", i), nil, func(t *task) {
					c := w.client(t, scheduler.Caller{Actor: "sim"})
					var types []string // all
					if c.at = i % nodes; c.at > 0 {
						types = []string{"mail"}
					}
					for ; ; t.sleep(10 * time.Millisecond) {
						if ready && c.workOnOne(types) {
							granted++
						}
					}
				})
			}
			for w.step(10 * time.Second) {
			}
			for round := 1; round <= rounds && w.failure == nil; round++ {
				w.spawn("large", nil, func(t *task) {
					c := w.client(t, scheduler.Caller{Actor: "sim"})
					large := lessor.Submission{
						Type: new("video"), TenantID: new(tenant(1).String()), RequestedUnits: new(int64(workers)),
					}
					_ = c.do("submit", func(ctx context.Context, n *node) error {
						_, err := n.Submit(ctx, c.caller, large)
						return err
					})
				})
				for end := w.now + within; granted < round && w.step(end); {
				}
				if granted < round {
					t.Errorf("%d nodes, seed %d: large job %d was not granted within %v", nodes, seed, round, within)
					break
				}
			}
			if w.failure != nil {
				t.Errorf("%d nodes, seed %d: %v", nodes, seed, w.failure)
			}
			w.end()
		}
	}
}

// workOnOne asks its node for one job, works on it for some time, submits a small one in its place, and reports whether
// it was a large one.
func (c *client) workOnOne(types []string) (large bool) {
	r := lessor.LeaseRequest{WorkerID: &c.name, Types: types}
	grants, _ := call(c, "request", func(ctx context.Context, n *node) ([]lessor.Grant, error) {
		grants, _, err := n.Request(ctx, c.caller, r)
		return grants, err
	})
	for _, g := range grants {
		c.sleep(time.Duration(500+c.random.IntN(1500)) * time.Millisecond)
		c.world.known.tried[act{g.Lease.ID.UUID, "completed"}] = true
		d := lessor.Completion{WorkerID: &c.name, Status: new("completed")}
		_ = c.do("complete", func(ctx context.Context, n *node) error {
			return n.Complete(ctx, c.caller, g.Lease.ID, d)
		})
		if large = g.Job.Type == "video"; !large {
			at := c.at
			c.refill(g.Job.TenantID, 1)
			c.at = at
		}
	}
	return large
}
