package main

import (
	"context"
	"fmt"

	"lessor"
)

const (
	bulk      = 1000       // the most jobs of one SubmitBatch
	loaders   = 16         // concurrent batches
	maxLeases = 500        // the most leases of one request
	maxTTL    = 43_200_000 // ms, so that no lease ends during a benchmark
)

// beater is the worker that holds the leases.
var beater = "beater"

// submit queues n jobs; tenant returns the tenant of job i.
func (s *server) submit(ctx context.Context, n int, tenant func(i int) *string) error {
	typ := "bench"
	return concurrently(ctx, loaders, (n+bulk-1)/bulk, func(ctx context.Context, _, item int) error {
		first := item * bulk
		subs := make([]lessor.Submission, min(bulk, n-first))
		for i := range subs {
			subs[i] = lessor.Submission{Type: &typ, Payload: []byte(payload), TenantID: tenant(first + i)}
		}
		if _, err := s.SubmitBatch(ctx, subs); err != nil {
			return fmt.Errorf("submit a batch: %w", err)
		}
		return nil
	})
}

// nobody is the tenant of jobs without one.
func nobody(int) *string { return nil }

// requester is a Lessor in this process or a client of one.
type requester interface {
	Request(ctx context.Context, r lessor.LeaseRequest) ([]lessor.Grant, *lessor.Denial, error)
}

// takeAll takes n leases that do not expire during a benchmark.
func takeAll(ctx context.Context, from requester, n int) ([]lessor.LeaseID, error) {
	leases := make([]lessor.LeaseID, 0, n)
	for len(leases) < n {
		grants, denial, err := from.Request(ctx, lessor.LeaseRequest{
			WorkerID: &beater, MaxLeases: new(int64(min(maxLeases, n-len(leases)))), TTLMS: new(int64(maxTTL)),
		})
		switch {
		case err != nil:
			return nil, err
		case denial != nil:
			return nil, fmt.Errorf("%w: %s", errNoGrant, denial.Reason)
		}
		for _, g := range grants {
			leases = append(leases, g.Lease.ID)
		}
	}
	return leases, nil
}

// hold submits n jobs and takes their leases; tenant returns the tenant of job i.
func (s *server) hold(ctx context.Context, n int, tenant func(i int) *string) ([]lessor.LeaseID, error) {
	if err := s.submit(ctx, n, tenant); err != nil {
		return nil, err
	}
	return takeAll(ctx, s, n)
}
