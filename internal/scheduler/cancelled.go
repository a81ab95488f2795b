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
	// cancelMemory is how long a node remembers a lease for a worker that is between two calls. A worker that does not
	// ask learns of it with its next heartbeat.
	cancelMemory = time.Minute
	// maxCancels bounds the leases that a node remembers.
	maxCancels = 4096
)

// cancels tells waiting workers which of their leases were cancelled, were taken away or have a message. Each lease is
// returned to one call.
type cancels struct {
	mu      sync.Mutex
	recent  []fold.Called // oldest first
	waiting map[rules.Holder]map[chan struct{}]struct{}
}

// add remembers leases, once for each reason, forgets those from before cancelMemory, and wakes the workers that wait.
func (c *cancels) add(all []fold.Called, now lessor.Instant) {
	if len(all) == 0 {
		return
	}
	type reason struct {
		lease lessor.LeaseID
		why   fold.Why
	}
	again := make(map[reason]bool, len(all))
	for _, r := range all {
		again[reason{r.Lease, r.Why}] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent = slices.DeleteFunc(c.recent, func(r fold.Called) bool {
		return r.At.Add(cancelMemory) < now || again[reason{r.Lease, r.Why}]
	})
	c.recent = append(c.recent, all...)
	c.recent = c.recent[max(0, len(c.recent)-maxCancels):]
	for _, r := range all {
		for wake := range c.waiting[r.Holder] {
			close(wake)
		}
		delete(c.waiting, r.Holder)
	}
}

// notify wakes the workers of the leases that the fold has called since the last commit.
func (l *loop) notify() { l.cancels.add(l.fold.TakeCalled(), l.fold.Serving.LastBeat) }

// take returns the worker's leases that have news, or only the one that ask names. If there are none, it returns a
// channel that is closed when there is one. The caller calls leave when it stops waiting. A worker's token is shown
// only those leases that were taken with it.
func (c *cancels) take(from Caller, ask rules.CancelAsk) (
	found lessor.StoppedLeases, wake <-chan struct{}, leave func(),
) {
	none := []lessor.LeaseID{}
	found = lessor.StoppedLeases{LeaseIDs: none, EndedIDs: none, MessagedIDs: none}
	lists := [...]*[]lessor.LeaseID{
		fold.Cancelled: &found.LeaseIDs, fold.TakenAway: &found.EndedIDs, fold.Messaged: &found.MessagedIDs,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := from.holder(ask.Worker)
	before := len(c.recent)
	c.recent = slices.DeleteFunc(c.recent, func(r fold.Called) bool {
		if r.Holder != h || from.Worker && r.Token != from.Token || ask.One && r.Lease != ask.Lease {
			return false
		}
		*lists[r.Why] = append(*lists[r.Why], r.Lease)
		return true
	})
	if len(c.recent) < before {
		return found, nil, func() {}
	}
	if c.waiting == nil {
		c.waiting = map[rules.Holder]map[chan struct{}]struct{}{}
	}
	if c.waiting[h] == nil {
		c.waiting[h] = map[chan struct{}]struct{}{}
	}
	woken := make(chan struct{})
	c.waiting[h][woken] = struct{}{}
	return found, woken, func() { c.leave(h, woken) }
}

func (c *cancels) leave(h rules.Holder, wake chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting[h], wake)
	if len(c.waiting[h]) == 0 {
		delete(c.waiting, h)
	}
}

// Cancelled waits until a lease of a worker must stop or has a message, on any node, and returns the leases: none if
// the wait is over. Each is returned once: the heartbeat of a lease is answered accordingly at any time.
func (s *Scheduler) Cancelled(
	ctx context.Context, c Caller, w lessor.CancelWait,
) (found lessor.StoppedLeases, err error) {
	ask, err := rules.CancelWait(&w)
	if err != nil {
		return found, err
	}
	if err := s.Ready(); err != nil {
		return found, err // another node may know more
	}
	for end := s.now().Add(ask.Wait); ; {
		left := end.Sub(s.now())
		found, wake, leave := s.cancels.take(c, ask)
		if wake == nil {
			return found, nil
		}
		if left > 0 {
			s.machine.Pause(ctx, wake, left)
		}
		leave()
		if left <= 0 || ctx.Err() != nil {
			return found, ctx.Err()
		}
	}
}
