package scheduler

import (
	"context"
	"sync"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// waits wakes callers that wait for an event of a job.
type waits struct {
	mu   sync.Mutex
	jobs map[lessor.JobID]map[chan struct{}]struct{}
	size int
}

// enter registers a caller to be woken by events of a job, until it calls leave.
func (w *waits) enter(id lessor.JobID) (wake <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs == nil {
		w.jobs = map[lessor.JobID]map[chan struct{}]struct{}{}
	}
	if w.jobs[id] == nil {
		w.jobs[id] = map[chan struct{}]struct{}{}
	}
	w.jobs[id][c] = struct{}{}
	w.size++
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.size--
		if delete(w.jobs[id], c); len(w.jobs[id]) == 0 {
			delete(w.jobs, id)
		}
	}
}

// wake wakes the callers that wait for events of these jobs.
func (w *waits) wake(ids []lessor.JobID) {
	if len(ids) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		for c := range w.jobs[id] {
			select {
			case c <- struct{}{}:
			default: // it is awake
			}
		}
	}
}

// pollCost is added per waiting caller to the pause between two reads of the store, so that all callers together read
// at most a thousand times a second.
const pollCost = time.Millisecond

// pace is the pause between two reads.
func (w *waits) pace() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(followEvery, time.Duration(w.size)*pollCost)
}

// poll repeats a read about a job until it succeeds or the wait is over. It reads again after each commit of this node
// that may concern the job, and at the pace of waits, because other nodes commit too.
func poll[T any](
	ctx context.Context, s *Scheduler, id lessor.JobID, wait time.Duration, read func() (v T, there bool, err error),
) (T, error) {
	if wait == 0 {
		v, _, err := read()
		return v, err
	}
	wake, leave := s.waits.enter(id)
	defer leave()
	for end := s.now().Add(wait); ; {
		left := end.Sub(s.now())
		v, there, err := read()
		if err != nil || there || left <= 0 {
			return v, err
		}
		if s.store.Shared() {
			left = min(left, s.waits.pace())
		}
		if s.machine.Pause(ctx, wake, left); ctx.Err() != nil {
			return v, ctx.Err()
		}
	}
}

// AwaitJob returns a job when it has ended, on whichever node, or as it is when the wait is over.
func (s *Scheduler) AwaitJob(ctx context.Context, c Caller, id lessor.JobID, waitMS *int64) (lessor.Job, error) {
	wait, err := rules.HoldFor(waitMS)
	if err != nil {
		return lessor.Job{}, err
	}
	return poll(ctx, s, id, wait, func() (lessor.Job, bool, error) {
		job, err := s.Job(ctx, c, id)
		return job, job.Final(), err
	})
}
