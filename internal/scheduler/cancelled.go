package scheduler

import (
	"context"
	"slices"
	"sync"
	"time"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

const (
	// cancelMemory is how long a node remembers a cancel request for a worker that is between two calls. A worker that
	// does not ask learns of it with its next heartbeat.
	cancelMemory = time.Minute
	// maxCancels bounds the cancel requests that a node remembers.
	maxCancels = 4096
)

// cancels hands cancel requests to the workers that wait for them, each to one call.
type cancels struct {
	mu      sync.Mutex
	recent  []fold.Cancelled // oldest first
	waiting map[rules.Holder]map[chan struct{}]struct{}
}

// add remembers cancel requests, forgets those from before cancelMemory, and wakes the workers that wait.
func (c *cancels) add(all []fold.Cancelled, now lessor.Instant) {
	if len(all) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent = slices.DeleteFunc(append(c.recent, all...), func(r fold.Cancelled) bool {
		return r.At.Add(cancelMemory) < now
	})
	c.recent = c.recent[max(0, len(c.recent)-maxCancels):]
	for _, r := range all {
		for wake := range c.waiting[r.Holder] {
			close(wake)
		}
		delete(c.waiting, r.Holder)
	}
}

// take returns the leases of a worker that were asked to stop, or a channel that is closed when there is one. The
// caller calls leave when it stops waiting. A worker's token is shown only the leases that were taken with it.
func (c *cancels) take(from Caller, worker string) (ids []lessor.LeaseID, wake <-chan struct{}, leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := from.holder(worker)
	c.recent = slices.DeleteFunc(c.recent, func(r fold.Cancelled) bool {
		if r.Holder != h || from.Worker && r.Token != from.Token {
			return false
		}
		ids = append(ids, r.Lease)
		return true
	})
	if len(ids) > 0 {
		return ids, nil, func() {}
	}
	if c.waiting == nil {
		c.waiting = map[rules.Holder]map[chan struct{}]struct{}{}
	}
	if c.waiting[h] == nil {
		c.waiting[h] = map[chan struct{}]struct{}{}
	}
	woken := make(chan struct{})
	c.waiting[h][woken] = struct{}{}
	return nil, woken, func() { c.leave(h, woken) }
}

func (c *cancels) leave(h rules.Holder, wake chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting[h], wake)
	if len(c.waiting[h]) == 0 {
		delete(c.waiting, h)
	}
}

// Cancelled waits until a lease of a worker is asked to stop, on any node, and returns the leases: none if the wait is
// over. Each is returned once: the heartbeat of a lease answers the same for as long as the lease lives.
func (s *Scheduler) Cancelled(
	ctx context.Context, c Caller, worker *string, waitMS *int64,
) ([]lessor.LeaseID, error) {
	name, wait, err := rules.CancelWait(worker, waitMS)
	if err != nil {
		return nil, err
	}
	if err := s.Ready(); err != nil {
		return nil, err // another node may hear of what this one cannot
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		ids, wake, leave := s.cancels.take(c, name)
		if len(ids) > 0 {
			return ids, nil
		}
		select {
		case <-wake:
			leave()
		case <-over.C:
			leave()
			return []lessor.LeaseID{}, nil
		case <-ctx.Done():
			leave()
			return nil, ctx.Err()
		}
	}
}
