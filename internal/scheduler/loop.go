package scheduler

import (
	"context"
	"errors"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// serveEvery is how often an idle scheduler notes that it serves: a quarter of the gap that moves the floor, so that
// a late timer is not taken for an outage.
const serveEvery = 250 * time.Millisecond

// followEvery is how often a node on which requests wait looks at what other nodes did: they are woken within 150 ms.
const followEvery = 100 * time.Millisecond

// retryStore is how long to wait before the fold is rebuilt again after the store failed.
const retryStore = 500 * time.Millisecond

// loop is the only goroutine that writes.
func (s *Scheduler) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.calls.Ready():
		case <-timer.C:
		}
		wait, err := s.turn(ctx)
		if errors.Is(err, ErrBroken) {
			s.setStatus(err)
			return err
		}
		timer.Reset(wait)
	}
}

// turn does what is to be done now and returns after how long to be called again if nothing arrives.
func (s *Scheduler) turn(ctx context.Context) (time.Duration, error) {
	serving, err := s.serve(ctx)
	if err != nil {
		s.setStatus(err)
		s.refuse(s.calls.Take(batchLimit), err)
		return retryStore, err
	}
	w := s.gather()
	if w.empty() {
		if err := s.followIdle(ctx); err != nil {
			s.setStatus(err)
			return retryStore, err
		}
		if !s.timeIsUp(serving.LastBeat) {
			return s.idle(serving.LastBeat), nil
		}
	}
	if err := s.commit(ctx, w); err != nil {
		s.setStatus(err)
		return retryStore, err
	}
	return s.idle(serving.LastBeat), nil
}

// serve notes that calls can be answered, with a fold that equals the tables.
func (s *Scheduler) serve(ctx context.Context) (rules.Serving, error) {
	if s.fold == nil {
		if err := s.rebuild(ctx); err != nil {
			return rules.Serving{}, err
		}
	}
	serving, err := s.store.Serve(ctx)
	if err != nil {
		s.fold = nil
		return serving, err
	}
	s.fold.serving = serving
	s.setStatus(nil)
	return serving, nil
}

// followIdle brings the fold up to date between commits, so that parked requests hear of what other nodes did.
func (s *Scheduler) followIdle(ctx context.Context) error {
	if !s.store.Shared() {
		return nil
	}
	err := s.store.View(ctx, func(v View) error { return s.follow(ctx, v) })
	if errors.Is(err, errStale) {
		return s.rebuild(ctx)
	}
	return err
}

// timeIsUp reports whether something is to be done although nobody called.
func (s *Scheduler) timeIsUp(now lessor.Instant) bool {
	return s.fold.sweepDue(now, s.cfg.Sweep) || s.fold.due(now) || s.fold.tickDue(now) || s.fold.trialDue(now) || s.fold.missDue(now) || s.fold.retainAt <= now || s.fold.woke && len(s.parked) > 0
}

// idle answers parked requests whose time is up and returns how long the loop may rest.
func (s *Scheduler) idle(now lessor.Instant) time.Duration {
	if s.fold.woke && len(s.parked) > 0 {
		return time.Millisecond // what came after the grants of this commit may be for those who wait
	}
	next := now.Add(serveEvery)
	if len(s.parked) > 0 && s.store.Shared() {
		next = now.Add(followEvery)
	}
	s.unpark(func(r *requestCall) bool {
		if r.until <= now {
			r.answer(nil)
			return true
		}
		next = min(next, r.until)
		return false
	})
	if at, ok := s.fold.nextLook(s.cfg.Sweep); ok {
		next = min(next, at)
	}
	for _, at := range []lessor.Instant{s.fold.dueAt, s.fold.tickAt, s.fold.trialAt, s.fold.expectAt()} {
		if at != 0 {
			next = min(next, at)
		}
	}
	return max(time.Millisecond, next.Sub(now))
}

var errStopping = &lessor.Error{Code: lessor.CodeUnavailable, Detail: "the server is stopping", RetryAfter: time.Second}

// refuseAll answers everything that waits when the loop has ended.
func (s *Scheduler) refuseAll() {
	s.setStatus(errStopping)
	for _, o := range s.calls.Close() {
		o.base().answer(errStopping)
	}
	s.unpark(func(r *requestCall) bool { r.answer(nil); return true })
	s.stream.close()
}

// refuse answers ops with what a failed store means to their callers.
func (s *Scheduler) refuse(ops []op, err error) {
	for _, o := range ops {
		o.base().answer(storeRefusal(err))
	}
}

// storeRefusal turns a store's fault into what a caller can act on; other faults pass as they are.
func storeRefusal(err error) error {
	r := &lessor.Error{Code: lessor.CodeUnavailable, RetryAfter: time.Second}
	switch {
	case errors.Is(err, ErrFull):
		r.Detail = "the disk of the store is full; nothing was changed"
	case errors.Is(err, ErrUnreachable):
		r.Detail = "the store is out of reach; nothing was changed"
	case errors.Is(err, ErrUnknownOutcome):
		r.Detail, r.OutcomeUnknown = "the answer to the commit was lost; repeat with the same key", true
	case errors.Is(err, ErrBroken):
		r.Detail = "the store reported an I/O error; the server stops"
	case errors.Is(err, ErrMoved):
		r.Detail = "the store changed under the call; nothing was changed"
	case errors.Is(err, context.Canceled):
		return errStopping
	default:
		return err
	}
	return r
}
