package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"lessor"
	"lessor/client"
)

const (
	// maxLeases is how many leases one request may ask for.
	maxLeases = 500
	// recallTimeout bounds the last question of a worker that stops: what was granted to the request that it gave up.
	recallTimeout = 5 * time.Second
)

// question is what one request asks for.
type question struct {
	types []string
	most  int
	wait  time.Duration
	wide  bool // leaves out types of which there is less room; it does not wait
}

// poll is the request that is under way. Guarded by Worker.mu.
type poll struct {
	types  []string
	cancel context.CancelFunc // nil = none
}

// freed ends a request that does not ask for a type of which there is room again: the next one will.
func (p *poll) freed(jobType string) {
	if p.cancel != nil && !slices.Contains(p.types, jobType) {
		p.cancel()
	}
}

// ask is the requesting loop: it asks for as much work as there is room for until ctx is done or the server refuses us. A
// request keeps its id until it is answered, so that a lost answer, or one not waited for, is given again instead of granted
// twice; its leases are counted from when it was first sent.
func (w *Worker) ask(ctx, work context.Context) error {
	var id string
	var since moment
	wide, failures := false, 0
	for {
		q, ok := w.room(ctx, wide)
		if !ok {
			break
		}
		if id == "" {
			id, since = rand.Text(), w.now()
		}
		sent := time.Now()
		grants, denial, err := w.request(ctx, q, id)
		switch {
		case err == nil && denial == nil:
			w.take(work, grants, since)
			id, failures, wide = "", 0, !q.wide && len(grants) == q.most
		case err == nil:
			id, failures, wide = "", 0, false
			// A request that was held to its end has waited already, and a wide one is followed by one that waits.
			if !q.wide && (q.wait == 0 || time.Since(sent) < q.wait*9/10) {
				pause(ctx, time.Duration(denial.RetryAfterMS)*time.Millisecond)
			}
		case errors.Is(err, context.Canceled): // there is room for more, or it is time to stop
		case !transient(err):
			return fmt.Errorf("request leases: %w", err)
		default:
			if failures++; failures == 1 {
				w.log.Warn("A request for leases was not answered; it will be repeated", "error", err)
			}
			pause(ctx, max(lessor.RetryPause(failures), retryAfter(err)))
		}
	}
	if id != "" {
		w.recall(work, id, since)
	}
	return nil
}

// room waits until a job could be run, and returns what to ask for. The sum of a request is bounded, not its share of each
// type, so it asks for as many as there is room for of every type it names: for all types with room by turns with, if wide,
// only those with the most.
func (w *Worker) room(ctx context.Context, wide bool) (question, bool) {
	for ctx.Err() == nil {
		w.mu.Lock()
		q, changed := w.roomLocked(wide), w.changed
		w.mu.Unlock()
		if q.most > 0 {
			return q, true
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return question{}, false
}

func (w *Worker) roomLocked(wide bool) question {
	// Ends that nobody acknowledges must not pile up: they and what runs are at most twice what may run.
	total := min(w.cfg.Concurrency-w.running, 2*w.cfg.Concurrency-len(w.held), maxLeases)
	q := question{most: total, wait: w.cfg.Wait}
	if total <= 0 {
		return question{}
	}
	room := map[string]int{}
	for name, h := range w.handlers {
		if free := min(h.limit-h.running, total); free > 0 {
			room[name] = free
			q.most = min(q.most, free)
		}
	}
	if len(room) == 0 {
		return question{}
	}
	if most := slices.Max(slices.Collect(maps.Values(room))); wide && most > q.most {
		maps.DeleteFunc(room, func(_ string, free int) bool { return free < most })
		q.most, q.wait, q.wide = most, 0, true
	}
	q.types = slices.Sorted(maps.Keys(room))
	return q
}

// request makes one request, which ends early when there is room for a type that it does not name.
func (w *Worker) request(ctx context.Context, q question, id string) ([]lessor.Grant, *lessor.Denial, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	if !q.wide {
		w.poll = poll{types: q.types, cancel: cancel}
		if len(w.roomLocked(false).types) > len(q.types) { // since q was made
			cancel()
		}
	}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.poll = poll{}
		w.mu.Unlock()
	}()
	r := lessor.LeaseRequest{
		WorkerID: &w.cfg.ID, Types: q.types, MaxLeases: new(int64(q.most)), WaitMS: new(q.wait.Milliseconds()), RequestID: &id,
	}
	if w.cfg.TTL > 0 {
		r.TTLMS = new(w.cfg.TTL.Milliseconds())
	}
	return w.cfg.Client.Request(ctx, r)
}

// recall gives back what was granted to a request that this worker, which stops, gave up.
func (w *Worker) recall(work context.Context, id string, since moment) {
	ctx, cancel := context.WithTimeout(work, recallTimeout)
	defer cancel()
	grants, err := recall(ctx, w.cfg.Client, w.cfg.ID, id)
	if err != nil {
		w.log.Warn("What was granted to the last request is not known; it will expire", "error", err)
		return
	}
	w.take(work, grants, since)
}

// recall returns what was granted to a request whose answer was not waited for. It asks for a type that no job has, so that
// nothing new is granted.
func recall(ctx context.Context, c *client.Client, worker, id string) ([]lessor.Grant, error) {
	grants, _, err := c.Request(ctx, lessor.LeaseRequest{
		WorkerID: &worker, Types: []string{"lessor.recall." + id}, MaxLeases: new(int64(1)), RequestID: &id,
	})
	return grants, err
}
