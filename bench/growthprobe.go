package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"lessor"
)

const (
	probeBatch   = 50 // items of a call; few enough that the calls of all callers are for different leases of few.held
	probeCallers = 2
	probeShare   = 25      // one in so many items of a round is a start, one in 4 × so many a page
	startType    = "start" // of the jobs that waiting requests ask for
)

var probeNames = []string{"submit", "grant", "heartbeat", "page", "start"}

// probe is what one operation cost, round by round.
type probe struct {
	costs []cost
	p50   []float64 // ms of a call
}

// grown is a server that was brought to an extent, and what its operations cost.
type grown struct {
	*filling
	extent extent
	items  int // of each operation in a round
	db     *database
	leases []lessor.LeaseID
	probes map[string]*probe
	ready  *restartFigures
}

// round measures each operation once, and leaves the server as it was.
func (g *grown) round(ctx context.Context) error {
	calls := g.items / probeBatch
	tenants := mixed(g.items, g.extent.tenants-g.extent.capped, g.extent.capped)
	err := g.probe(ctx, "submit", probeCallers, calls, probeBatch, func(ctx context.Context, item int) error {
		return g.submitFew(ctx, item*probeBatch, tenants)
	})
	if err != nil {
		return err
	}
	if err := g.reopen(ctx); err != nil {
		return err
	}
	// The first call waits until the server has read its queue and leases, which restart measures.
	if _, _, err := g.Request(ctx, lessor.LeaseRequest{WorkerID: &beater, Types: []string{"none"}}); err != nil {
		return err
	}
	stop := g.wait(ctx)
	defer stop()
	leases := make([][]lessor.LeaseID, calls)
	err = g.probe(ctx, "grant", probeCallers, calls, probeBatch, func(ctx context.Context, item int) (err error) {
		leases[item], err = takeAll(ctx, g, probeBatch)
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(g.read(ctx), g.start(ctx), g.finishAll(ctx, slices.Concat(leases...)))
}

// read measures heartbeats and pages of the list. Each lease has sent one heartbeat since the server was opened.
func (g *grown) read(ctx context.Context) error {
	ids := make([]string, len(g.leases))
	for i, id := range g.leases {
		ids[i] = id.String()
	}
	calls := g.items / probeBatch
	beat := func(ctx context.Context, item int) error {
		at := item * 7919 * probeBatch % len(ids) // far from the call before
		answers, err := g.HeartbeatAll(ctx, beater, ids[at:at+probeBatch])
		for _, a := range answers {
			err = errors.Join(err, a.Err)
		}
		return err
	}
	first := func(ctx context.Context, _, item int) error { return beat(ctx, item) }
	err := concurrently(ctx, probeCallers, calls, first)
	if err == nil {
		err = g.probe(ctx, "heartbeat", probeCallers, calls, probeBatch, beat)
	}
	if err != nil {
		return err
	}
	queries := []string{"", "&state=queued", "&state=completed", "&tenant_id=" + tenantID(0)}
	return g.probe(ctx, "page", 1, g.items/probeShare/4, 1, func(ctx context.Context, item int) error {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet,
			"http://127.0.0.1/api/system/scheduler/jobs?limit=50"+queries[item%len(queries)], nil)
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		if g.Handler().ServeHTTP(w, r); w.Code != http.StatusOK {
			return fmt.Errorf("page: %d %s", w.Code, w.Body)
		}
		return nil
	})
}

// probe measures calls of items each.
func (g *grown) probe(
	ctx context.Context, name string, callers, calls, items int, call func(ctx context.Context, item int) error,
) error {
	took := make([]float64, calls)
	all, err := g.db.total(calls*items, func() error {
		return concurrently(ctx, callers, calls, func(ctx context.Context, _, item int) error {
			start := time.Now()
			err := call(ctx, item)
			took[item] = time.Since(start).Seconds() * 1000
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p := g.probes[name]
	if p == nil {
		p = &probe{}
		g.probes[name] = p
	}
	p.costs, p.p50 = append(p.costs, all), append(p.p50, middle(took))
	return nil
}

// total is measure with the CPU time of the database, if there is one, added.
func (d *database) total(ops int, fn func() error) (cost, error) {
	before := d.used()
	c, err := measure(ops, fn)
	c.cpu += d.used() - before
	return c, err
}

func (g *grown) submitFew(ctx context.Context, first int, tenant func(int) *string) error {
	typ := "bench"
	subs := make([]lessor.Submission, probeBatch)
	for i := range subs {
		subs[i] = lessor.Submission{Type: &typ, Payload: []byte(payload), TenantID: tenant(first + i)}
	}
	_, err := g.SubmitBatch(ctx, subs)
	return err
}

// wait has requests wait for jobs of startType, and complete them, until stop is called.
func (g *grown) wait(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	for _, name := range workerNames(g.extent.waiting) {
		waiting.Go(func() {
			for ctx.Err() == nil {
				grants, _, err := g.Request(ctx, lessor.LeaseRequest{
					WorkerID: &name, Types: []string{startType}, WaitMS: new(int64(30_000)),
				})
				if err != nil || len(grants) == 0 {
					continue
				}
				_ = g.finish(ctx, grants[0].Lease.ID, &name) // the submitter waits for it
			}
		})
	}
	return func() { cancel(); waiting.Wait() }
}

// start measures jobs that come one by one and start at once, because requests wait for them.
func (g *grown) start(ctx context.Context) error {
	return g.probe(ctx, "start", 1, g.items/probeShare, 1, func(ctx context.Context, _ int) error {
		job, err := g.SubmitJob(ctx, lessor.Submission{Type: new(startType), Payload: []byte(payload)})
		if err != nil {
			return err
		}
		_, err = g.Wait(ctx, job.ID)
		return err
	})
}

func (g *grown) finishAll(ctx context.Context, leases []lessor.LeaseID) error {
	return concurrently(ctx, lifecycleCallers, len(leases), func(ctx context.Context, _, i int) error {
		return g.finish(ctx, leases[i], &beater)
	})
}
