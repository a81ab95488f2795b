package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// TestTenantsGetEqualShares is P12 in worlds without faults: tenants that are never without queued jobs get equal parts
// of any 1000 grants, whichever nodes make them.
func TestTenantsGetEqualShares(t *testing.T) {
	const tenants, workers, want = 4, 8, 3000
	for _, nodes := range []int{1, 3} {
		for seed := uint64(1); seed <= 3; seed++ {
			plan := Plan{Seed: seed, Nodes: nodes, Handovers: 0.4, Latency: 2 * time.Millisecond}
			w := newWorld(plan, nil)
			var granted []lessor.TenantID
			ready := 0
			for i := range tenants {
				w.spawn(fmt.Sprintf("submitter-%d", i), nil, func(t *task) {
					c := w.client(t, scheduler.Caller{Actor: "sim"})
					c.uncap(tenant(i + 1))
					c.refill(tenant(i+1), 40)
					ready++
				})
			}
			for i := range workers {
				w.spawn(fmt.Sprintf("worker-%d", i), nil, func(t *task) {
					c := w.client(t, scheduler.Caller{Actor: "sim"})
					for ; len(granted) < want; t.sleep(10 * time.Millisecond) {
						if ready == tenants {
							granted = append(granted, c.workOff()...)
						}
					}
				})
			}
			for len(granted) < want && w.step(time.Hour) {
			}
			w.end()
			if w.failure != nil || len(granted) < want {
				t.Fatalf("%d nodes, seed %d: %d grants, %v", nodes, seed, len(granted), w.failure)
			}
			checkShares(t, granted, tenants, fmt.Sprintf("%d nodes, seed %d", nodes, seed))
		}
	}
}

// uncap lets a tenant have as many leases as there are.
func (c *client) uncap(id lessor.TenantID) {
	_ = c.do("uncap", func(ctx context.Context, n *node) error { // nothing fails in this world
		_, err := n.SetTenant(ctx, c.caller, id, lessor.TenantAsk{MaxConcurrency: lessor.SetTo(int64(1000))})
		return err
	})
}

// refill submits jobs of a tenant at any node.
func (c *client) refill(id lessor.TenantID, jobs int) {
	c.at = c.random.IntN(len(c.world.nodes))
	subs := make([]lessor.Submission, jobs)
	for i := range subs {
		subs[i] = lessor.Submission{Type: new("mail"), TenantID: new(id.String()), Payload: []byte(`{}`)}
	}
	_ = c.do("submit", func(ctx context.Context, n *node) error {
		_, err := n.SubmitBatch(ctx, c.caller, subs)
		return err
	})
}

// workOff asks a node for jobs, completes them, submits as many in their places, and returns whose they were.
func (c *client) workOff() (whose []lessor.TenantID) {
	c.at = c.random.IntN(len(c.world.nodes))
	r := lessor.LeaseRequest{WorkerID: &c.name, MaxLeases: new(int64(1 + c.random.IntN(4)))}
	grants, _ := call(c, "request", func(ctx context.Context, n *node) ([]lessor.Grant, error) {
		grants, _, err := n.Request(ctx, c.caller, r)
		return grants, err
	})
	for _, g := range grants {
		whose = append(whose, g.Job.TenantID)
		c.world.known.tried[act{g.Lease.ID.UUID, "completed"}] = true
		d := lessor.Completion{WorkerID: &c.name, Status: new("completed")}
		_ = c.do("complete", func(ctx context.Context, n *node) error {
			return n.Complete(ctx, c.caller, g.Lease.ID, d)
		})
		c.refill(g.Job.TenantID, 1)
	}
	return whose
}

// checkShares checks that each of k tenants has its part of any 1000 grants, ± 10 %.
func checkShares(t *testing.T, granted []lessor.TenantID, k int, world string) {
	t.Helper()
	window := map[lessor.TenantID]int{}
	for i, id := range granted {
		if window[id]++; i < 999 {
			continue
		}
		for m := range k {
			if n := window[tenant(m+1)]; n < 900/k || n > 1100/k {
				t.Fatalf("%s: of 1000 grants up to %d the tenants got %v, the part of each is %d",
					world, i, window, 1000/k)
			}
		}
		window[granted[i-999]]--
	}
}
