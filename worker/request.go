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
	// returnTimeout bounds the last call of a stopping worker, which learns what its abandoned request was granted.
	returnTimeout = 5 * time.Second
)

// query is what one request asks for.
type query struct {
	types []string
	most  int
	wait  time.Duration
	wide  bool // names only the types with the most room, and does not wait
	turn  bool // is sent in a turn, and does not wait
	view  bool // asks for the view of a worker, which older servers do not know
}

// poll is the request that waits for its answer. Guarded by Worker.mu.
type poll struct {
	types  []string
	cancel context.CancelFunc // nil = none
}

// freed cancels a request that does not name jobType, which has room again. The next request will name it.
func (p *poll) freed(jobType string) {
	if p.cancel != nil && !slices.Contains(p.types, jobType) {
		p.cancel()
	}
}

// requestLoop requests as many leases as there is room for until ctx is done or the server refuses this worker. A
// request keeps its id until it is answered, so that the server repeats a lost answer instead of granting twice. The
// leases of a request count from the time at which it was first sent. The second loop requests only in a rush.
func (w *Worker) requestLoop(ctx, work context.Context, second bool) error {
	var id string
	var since moment
	var unanswered query
	defer func() { w.endRush(unanswered) }()
	wide, failures := false, 0
	for {
		q, ok := w.awaitRoom(ctx, unanswered, wide, second)
		if !ok {
			break
		}
		if id == "" {
			id, since = rand.Text(), w.now()
		}
		sent := time.Now()
		grants, denial, err := w.request(ctx, q, id)
		if unanswered = (query{}); err == nil {
			w.take(work, grants, since, q)
		} else {
			unanswered = q
			w.mu.Lock()
			w.setRushLocked(false)
			w.mu.Unlock()
		}
		switch {
		case err == nil && denial == nil:
			id, failures, wide = "", 0, !q.wide && len(grants) == q.most
		case err == nil:
			id, failures, wide = "", 0, false
			// The server has already held a request that waited, and the others are followed by one that waits.
			if !q.wide && !q.turn && (q.wait == 0 || time.Since(sent) < q.wait*9/10) {
				pauseAbout(ctx, time.Duration(denial.RetryAfterMS)*time.Millisecond)
			}
		case ctx.Err() != nil || errors.Is(err, context.Canceled): // the worker stops, or another type has room
		case w.isOld(q, err), q.turn && refused(err): // the next request is a plain one
		case !transient(err):
			return fmt.Errorf("request leases: %w", err)
		default:
			if failures++; failures == 1 {
				w.log.Warn("A request for leases was not answered; it will be repeated", "error", err)
			}
			pauseAbout(ctx, max(lessor.RetryPause(failures), retryAfter(err)))
		}
	}
	if id != "" {
		w.returnGrants(work, id, since)
	}
	return nil
}

// awaitRoom waits until there is room for a job, and returns what to request. A request bounds the sum of its leases
// and not the number per type, so it asks for as many leases as there is room for in every type that it names.
// Requests that name all types with room alternate with wide ones, which name only the types with the most room.
func (w *Worker) awaitRoom(ctx context.Context, unanswered query, wide, second bool) (query, bool) {
	var linger *time.Timer
	var lingered <-chan time.Time
	defer func() {
		if linger != nil {
			linger.Stop()
		}
	}()
	late := false
	for ctx.Err() == nil {
		w.mu.Lock()
		q, ok := w.nextLocked(unanswered, wide, second, late)
		changed, patience := w.changedLocked(), min(w.rush.took/rushLinger, rushWait)
		w.mu.Unlock()
		if ok {
			return q, true
		}
		if q.most > 0 && q.turn && !second && linger == nil {
			linger = time.NewTimer(patience)
			lingered = linger.C
		}
		select {
		case <-changed:
		case <-lingered:
			late = true
		case <-ctx.Done():
		}
	}
	return query{}, false
}

func (w *Worker) roomLocked(wide bool) query {
	// Unacknowledged ends must not pile up: together with the running jobs they are at most twice the concurrency.
	total := min(w.cfg.Concurrency-w.running-w.asked, 2*w.cfg.Concurrency-len(w.leases)-w.asked, maxLeases)
	q := query{most: total, wait: w.cfg.Wait}
	if total <= 0 {
		return query{}
	}
	room := map[string]int{}
	for name, h := range w.handlers {
		if free := min(h.limit-h.running-h.asked, total); free > 0 {
			room[name] = free
			q.most = min(q.most, free)
		}
	}
	if len(room) == 0 {
		return query{}
	}
	if most := slices.Max(slices.Collect(maps.Values(room))); wide && most > q.most {
		maps.DeleteFunc(room, func(_ string, free int) bool { return free < most })
		q.most, q.wait, q.wide = most, 0, true
	}
	q.types = slices.Sorted(maps.Keys(room))
	return q
}

// request sends one request. It ends early when a type that it does not name has room.
func (w *Worker) request(ctx context.Context, q query, id string) ([]lessor.Grant, *lessor.Denial, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	waits := q.wait > 0
	if waits {
		w.poll = poll{types: q.types, cancel: cancel}
		for _, name := range w.roomLocked(false).types {
			w.poll.freed(name) // since q was made
		}
	}
	w.mu.Unlock()
	if waits {
		defer func() {
			w.mu.Lock()
			w.poll = poll{}
			w.mu.Unlock()
		}()
	}
	r := lessor.LeaseRequest{
		WorkerID: &w.cfg.ID, Types: q.types, RequestID: &id,
		MaxLeases: new(int64(q.most)), WaitMS: new(q.wait.Milliseconds()),
	}
	if w.cfg.TTL > 0 {
		r.TTLMS = new(w.cfg.TTL.Milliseconds())
	}
	if q.view {
		r.View = new(lessor.ViewWork)
	}
	if q.turn {
		return w.turn(ctx, r)
	}
	return w.cfg.Client.Request(ctx, r)
}

// returnGrants releases the leases that were granted to a request which the stopping worker abandoned.
func (w *Worker) returnGrants(work context.Context, id string, since moment) {
	ctx, cancel := context.WithTimeout(work, returnTimeout)
	defer cancel()
	grants, err := grantsOf(ctx, w.cfg.Client, w.cfg.ID, id)
	if err != nil {
		w.log.Warn("The last request for leases was not answered; leases that it granted will expire", "error", err)
		return
	}
	w.take(work, grants, since, query{})
}

// grantsOf returns what was granted to an abandoned request. It repeats the request for a type that no job has, so that
// nothing new is granted.
func grantsOf(ctx context.Context, c *client.Client, worker, id string) ([]lessor.Grant, error) {
	grants, _, err := c.Request(ctx, lessor.LeaseRequest{
		WorkerID: &worker, Types: []string{"lessor.recall." + id}, MaxLeases: new(int64(1)), RequestID: &id,
	})
	return grants, err
}
