package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"lessor"
)

const (
	millionCallers = 4096 // heartbeats under way at once: what a million workers have under way at any moment
	millionPace    = 20.0 // seconds between two heartbeats of a worker with the default ttl of 60 s
)

// million has a million workers with a lease each send heartbeats, and return after an outage that was longer than
// their leases: none may be lost. The scheduler and the store are real; the workers are calls in this process.
func million(ctx context.Context, b *bench) (err error) {
	m := millionRun{workers: workerNames(b.size.of(1_000_000, 100_000, 500))}
	if m.server, err = b.start(ctx, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.end()) }()
	if err := m.take(ctx); err != nil {
		return err
	}
	b.note("million: %d workers have a lease each", len(m.workers))
	steady, err := measure(len(m.workers), func() error { return m.beatAll(ctx, nil) })
	if err != nil {
		return err
	}
	ttl := max(10*time.Second, 3*steady.wall) // so that all can return in time, however slow the machine is
	if b.size == smoke {
		ttl = 2 * time.Second
	}
	b.note("million: a round of heartbeats took %v; the leases now live for %v", steady.wall, ttl)
	if err := m.beatAll(ctx, new(ttl.Milliseconds())); err != nil {
		return err
	}
	down := time.Now()
	if err := m.shut(); err != nil {
		return err
	}
	if err := pass(ctx, ttl+time.Second); err != nil {
		return err
	}
	outage, up := time.Since(down), time.Now()
	if err := m.open(ctx); err != nil {
		return err
	}
	if _, err := m.Status(ctx); err != nil {
		return err
	}
	ready := time.Since(up)
	back, err := measure(len(m.workers), func() error { return m.beatAll(ctx, nil) })
	if err != nil {
		return err
	}
	b.setting("%d workers with a lease each, one heartbeat per call, %d calls at once, in random order; SQLite",
		len(m.workers), millionCallers)
	b.setting("an outage of %.0f s with leases of %.0f s; ready again after %.1f s", outage.Seconds(), ttl.Seconds(),
		ready.Seconds())
	b.table("|heartbeats/s|CPU µs each|all in s|lost", []string{
		fmt.Sprintf("steady|%.0f|%.1f|%.1f|0", steady.rate(), steady.cpuUS(), steady.wall.Seconds()),
		fmt.Sprintf("return|%.0f|%.1f|%.1f|%d", back.rate(), back.cpuUS(), back.wall.Seconds(), m.lost.Load()),
	})
	b.atMost("leases lost by the outage", float64(m.lost.Load()), 0)
	b.atMost("seconds for a heartbeat of each worker", steady.wall.Seconds(), millionPace)
	return nil
}

type millionRun struct {
	*server
	workers []string
	leases  []lessor.LeaseID // of each worker
	lost    atomic.Int64
}

// take gives each worker a lease.
func (m *millionRun) take(ctx context.Context) error {
	if err := m.submit(ctx, len(m.workers), nobody); err != nil {
		return err
	}
	m.leases = make([]lessor.LeaseID, len(m.workers))
	return concurrently(ctx, millionCallers, len(m.workers), func(ctx context.Context, _, i int) error {
		grants, denial, err := m.Request(ctx, lessor.LeaseRequest{WorkerID: &m.workers[i], TTLMS: new(int64(maxTTL))})
		switch {
		case err != nil:
			return err
		case denial != nil:
			return fmt.Errorf("%w: %s", errNoGrant, denial.Reason)
		}
		m.leases[i] = grants[0].Lease.ID
		return nil
	})
}

// beatAll has each worker send a heartbeat, in random order, and counts the leases that are gone. If ttl is not nil,
// the leases live that many milliseconds from then on.
func (m *millionRun) beatAll(ctx context.Context, ttl *int64) error {
	order := rand.Perm(len(m.workers))
	return concurrently(ctx, millionCallers, len(order), func(ctx context.Context, _, item int) error {
		i := order[item]
		_, err := m.Heartbeat(ctx, m.leases[i], lessor.Heartbeat{WorkerID: &m.workers[i], TTLMS: ttl})
		if lessor.CodeOf(err) == lessor.CodeLeaseNotFound {
			m.lost.Add(1)
			return nil
		}
		return err
	})
}
