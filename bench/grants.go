package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"lessor"
	"lessor/node"
)

const (
	grantBound   = 1.6 // times a grant from a short queue
	shortQueue   = 1000
	grantTenants = 10_000
	// grantCap is so low that half of the tenants reach it soon, and so high that the other half does not reach it in a
	// timed part.
	grantCap = 4
	// The store begins to delete the rows of granted jobs when they are 1/grantLeft of the queue and at least grantFew.
	// From then on it deletes one row for each job that it grants.
	grantLeft = 8
	grantFew  = 4096
	// grantWarm is the number of commits that a reopened server makes before it is timed.
	grantWarm = 16
)

var commitSizes = []int{16, 64, 256}

// grants compares the cost of a grant from a long queue with that from a short one. Both servers run side by side and
// are measured alternately.
func grants(ctx context.Context, b *bench) (err error) {
	g := grantRun{
		b: b, jobs: b.size.of(1_000_000, 100_000, 2_000), tenants: b.size.of(grantTenants, grantTenants, 200),
		part: b.size.of(16_384, 8_192, 256), rounds: b.size.of(5, 2, 1),
	}
	if g.short, err = b.start(ctx, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.short.end()) }()
	if g.long, err = b.start(ctx, func(c *node.Config) { c.Tenants.DefaultCap = grantCap }); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.long.end()) }()
	release, err := g.short.keepLog(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := g.load(ctx); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if err := g.settle(ctx); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	return g.compare(ctx)
}

// grantRun is one comparison.
type grantRun struct {
	b           *bench
	short, long *server
	jobs        int // in the long queue
	tenants     int // of the long queue; half of them are at their cap
	part        int // grants in one timed part
	rounds      int
	loaded      cost
}

// load fills both queues. The first half of the tenants submits first and takes leases up to its caps.
func (g *grantRun) load(ctx context.Context) error {
	if err := g.short.submit(ctx, shortQueue, nobody); err != nil {
		return err
	}
	g.b.note("grants: queueing %d jobs of %d tenants", g.jobs, g.tenants)
	half := g.tenants / 2
	capped := half * grantCap
	loaded, err := measure(g.jobs+capped, func() error {
		return g.long.submit(ctx, g.jobs/2+capped, mixed(g.jobs/2+capped, half, 0))
	})
	if err != nil {
		return err
	}
	g.b.note("grants: taking leases of half of the tenants up to their cap of %d", grantCap)
	held := 0
	for {
		grants, denial, err := g.long.take(ctx, maxLeases)
		if err != nil {
			return err
		}
		if denial != nil {
			break
		}
		held += len(grants)
	}
	rest, err := timed(0, func() error {
		return g.long.submit(ctx, g.jobs/2, mixed(g.jobs/2, half, half))
	})
	g.loaded = loaded.plus(rest)
	if err != nil {
		return err
	}
	return g.check(ctx, held, capped)
}

// check verifies that the long queue is as the table describes it.
func (g *grantRun) check(ctx context.Context, held, capped int) error {
	if held != capped {
		return fmt.Errorf("%d leases are held instead of %d", held, capped)
	}
	st, err := g.long.Status(ctx)
	if err != nil {
		return err
	}
	if st.QueueDepth.Normal != g.jobs {
		return fmt.Errorf("%d jobs are queued instead of %d", st.QueueDepth.Normal, g.jobs)
	}
	return nil
}

// settle reopens the server of the long queue, so that it has no recent jobs in memory, and grants until each commit
// also pays for a deferred deletion.
func (g *grantRun) settle(ctx context.Context) error {
	if err := g.long.reopen(ctx); err != nil {
		return err
	}
	n := max(grantFew, g.jobs/grantLeft)
	g.b.note("grants: granting %d jobs, until commits pay for deferred deletions", n)
	for done := 0; done <= n; done += g.part {
		if _, err := g.fromLong(ctx, min(256, g.part)); err != nil {
			return err
		}
	}
	return nil
}

// mixed distributes n jobs evenly over tenants, beginning with tenant first, in a random order that is the same in each
// run. The first jobs of the tenants then lie pages apart, as they do when tenants submit independently.
func mixed(n, tenants, first int) func(int) *string {
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	ids := make([]string, tenants)
	for i := range ids {
		ids[i] = tenantID(first + i)
	}
	return func(i int) *string { return &ids[order[i]%tenants] }
}

func (g *grantRun) compare(ctx context.Context) error {
	b := g.b
	b.setting("%d jobs queued over %d tenants, half of them at their cap of %d, against %d jobs of one tenant",
		g.jobs, g.tenants, grantCap, shortQueue)
	b.setting("%d grants per timed part, %d alternating rounds, medians; one Request per commit; loaded %.0f jobs/s",
		g.part, g.rounds, g.loaded.rate())
	b.setting(`short and long have no job in memory; "in memory" is the short queue with recently submitted jobs`)
	var rows []string
	type ratio struct{ wall, cpu float64 }
	ratios := make([]ratio, len(commitSizes))
	for i, k := range commitSizes {
		t, err := g.inTurns(ctx, k)
		if err != nil {
			return err
		}
		ratios[i] = ratio{
			median(t.long, cost.wallUS) / median(t.short, cost.wallUS),
			median(t.long, cost.cpuUS) / median(t.short, cost.cpuUS),
		}
		rows = append(rows, fmt.Sprintf("%d|%.1f|%.1f|%.1f|%.2f|%.1f|%.1f|%.1f|%.2f", k,
			median(t.warm, cost.wallUS), median(t.short, cost.wallUS), median(t.long, cost.wallUS), ratios[i].wall,
			median(t.warm, cost.cpuUS), median(t.short, cost.cpuUS), median(t.long, cost.cpuUS), ratios[i].cpu))
	}
	b.table("per commit|wall µs in memory|short|long|times|CPU µs in memory|short|long|times", rows)
	for i, k := range commitSizes {
		b.atMost(fmt.Sprintf("CPU of a grant, long over short, %d per commit", k), ratios[i].cpu, grantBound)
		b.atMost(fmt.Sprintf("wall of a grant, long over short, %d per commit", k), ratios[i].wall, grantBound)
	}
	return nil
}

// grantTimes are the rounds with one size of commit.
type grantTimes struct{ warm, short, long []cost }

// inTurns measures both servers alternately with k grants per commit. It discards the first round.
func (g *grantRun) inTurns(ctx context.Context, k int) (t grantTimes, err error) {
	for r := range g.rounds + 1 {
		g.b.note("grants: %d per commit, round %d of %d", k, r, g.rounds)
		warm, err := g.fromShort(ctx, k, nil)
		if err != nil {
			return t, fmt.Errorf("short queue in memory: %w", err)
		}
		short, err := g.fromShort(ctx, k, g.forget)
		if err != nil {
			return t, fmt.Errorf("short queue: %w", err)
		}
		long, err := g.fromLong(ctx, k)
		if err != nil {
			return t, fmt.Errorf("long queue: %w", err)
		}
		if r > 0 {
			t.warm, t.short, t.long = append(t.warm, warm), append(t.short, short), append(t.long, long)
		}
	}
	return t, nil
}

// fromShort times grants from the short queue. It refills the queue outside the timed parts, and calls before, unless
// it is nil, ahead of each one.
func (g *grantRun) fromShort(ctx context.Context, k int, before func(context.Context) error) (all cost, err error) {
	const chunk = 512 // about half of the queue
	n := min(chunk, g.part)
	for all.ops < g.part {
		if before != nil {
			if err := before(ctx); err != nil {
				return all, err
			}
		}
		var leases []lessor.Grant
		c, err := measure(n, func() (err error) { leases, err = g.short.grant(ctx, n, k); return err })
		if err != nil {
			return all, err
		}
		all = all.plus(c)
		if err := g.short.renew(ctx, leases); err != nil {
			return all, err
		}
	}
	return all, nil
}

// forget reopens the server of the short queue, so that it has no job in memory, and makes its first commits.
func (g *grantRun) forget(ctx context.Context) error {
	if err := g.short.reopen(ctx); err != nil {
		return err
	}
	leases, err := g.short.grant(ctx, grantWarm, 1)
	if err != nil {
		return err
	}
	return g.short.renew(ctx, leases)
}

// fromLong times grants from the long queue in one part, which includes the checkpoints that these commits cause.
func (g *grantRun) fromLong(ctx context.Context, k int) (cost, error) {
	var leases []lessor.Grant
	c, err := measure(g.part, func() (err error) { leases, err = g.long.grant(ctx, g.part, k); return err })
	if err != nil {
		return c, err
	}
	return c, g.long.renew(ctx, leases)
}

// grant takes n leases, k per commit.
func (s *server) grant(ctx context.Context, n, k int) ([]lessor.Grant, error) {
	all := make([]lessor.Grant, 0, n)
	for len(all) < n {
		grants, denial, err := s.take(ctx, k)
		switch {
		case err != nil:
			return nil, err
		case denial != nil:
			return nil, fmt.Errorf("%w: %s", errNoGrant, denial.Reason)
		case len(grants) != k:
			return nil, fmt.Errorf("%d grants instead of %d", len(grants), k)
		}
		all = append(all, grants...)
	}
	return all, nil
}

// renew ends the leases and queues as many jobs of the same tenants.
func (s *server) renew(ctx context.Context, grants []lessor.Grant) error {
	err := concurrently(ctx, lifecycleCallers, len(grants), func(ctx context.Context, _, i int) error {
		return s.finish(ctx, grants[i].Lease.ID, &beater)
	})
	if err != nil {
		return err
	}
	return s.submit(ctx, len(grants), func(i int) *string {
		if t := grants[i].Job.TenantID; !t.IsZero() {
			return new(t.String())
		}
		return nil
	})
}
