package scheduler

import (
	"context"
	"errors"
	"time"

	"lessor"
)

// serveEvery is how often an idle scheduler notes that it serves: a quarter of the gap that moves the floor, so that
// a late timer is not taken for an outage.
const serveEvery = 250 * time.Millisecond

// serveBusy is how often a busy one does: its transactions show as much to callers, and so it may be late by a few of them.
const serveBusy = serveEvery / 2

// followEvery is how often a node on which requests wait looks at what other nodes did: they are woken within 150 ms.
const followEvery = 100 * time.Millisecond

// retryStore is how long to wait before the fold is rebuilt again after the store failed.
const retryStore = 500 * time.Millisecond

// loop is the only goroutine that writes.
func (s *Scheduler) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		do, ready := s.turn, s.calls.Ready(s.enough())
		if len(s.flights) == maxFlights {
			ready = nil
		}
		select {
		case <-ctx.Done():
			_ = s.land(ctx) // its callers are told
			return nil
		case <-s.landed():
			do = s.rest
		case <-ready:
		case <-timer.C:
		}
		s.linger = linger{}
		wait, err := s.safely(ctx, do)
		switch {
		case err != nil:
			s.setStatus(err)
			wait = retryStore
		case s.linger.calls > 0:
			wait = min(wait, s.linger.wait)
		}
		if errors.Is(err, ErrBroken) {
			return err
		}
		if !s.calmDown(ctx) {
			return nil
		}
		timer.Reset(wait)
	}
}

// turn does what is to be done now and returns after how long to be called again if nothing arrives.
func (s *Scheduler) turn(ctx context.Context) (time.Duration, error) {
	w := s.gather()
	s.works = append(s.works, w)
	if err := s.prepare(ctx, w); err != nil {
		s.refuse(w.all(), err)
		return 0, err
	}
	if !w.empty() || s.timeIsUp() {
		if err := s.commit(ctx, w); err != nil {
			return 0, err
		}
	}
	return s.idle(), nil
}

// rest makes room for the next commit when one has landed.
func (s *Scheduler) rest(ctx context.Context) (time.Duration, error) {
	if err := s.arrive(ctx); err != nil {
		return 0, err
	}
	return s.idle(), nil
}

// prepare sees to it that w can be answered, and answers looks at the fold, which need no transaction.
func (s *Scheduler) prepare(ctx context.Context, w *work) error {
	s.askWentBack()
	if w.empty() || s.fold == nil || time.Since(s.servedAt) > serveBusy {
		if err := s.serve(ctx); err != nil {
			return err
		}
	}
	if len(s.flights) == 0 && (w.empty() || time.Since(s.fold.followedAt) > serveEvery) {
		if err := s.followIdle(ctx); err != nil {
			return err
		}
	}
	if len(w.looks) == 0 {
		return nil
	}
	if err := s.land(ctx); err != nil {
		return err
	}
	for _, c := range w.looks {
		c.fn()
		c.answer(nil)
	}
	return nil
}

// serve notes that calls can be answered, with a fold that equals the tables.
func (s *Scheduler) serve(ctx context.Context) error {
	if s.beatsRefused {
		if _, err := s.store.Serve(ctx, true); err != nil { // before the tables are read, which may fail too
			_ = s.land(ctx) // its callers are told
			s.fold = nil
			return err
		}
		s.beatsRefused = false
	}
	if s.fold == nil {
		if err := s.rebuild(ctx); err != nil {
			return err
		}
	}
	serving, err := s.store.Serve(ctx, false)
	if err != nil {
		_ = s.land(ctx) // its callers are told
		s.fold = nil
		return err
	}
	s.fold.serving, s.servedAt = serving, time.Now()
	s.lapseSettings(serving.LastBeat)
	s.readClock(serving.LastBeat)
	if s.panics < 2 {
		s.setStatus(nil)
	}
	return nil
}

// followIdle brings the fold up to date between commits, so that parked requests hear of what other nodes did, and submissions are held
// against the settings of now.
func (s *Scheduler) followIdle(ctx context.Context) error {
	if !s.store.Shared() {
		return nil
	}
	err := s.store.View(ctx, func(v View) error { return s.follow(ctx, v) })
	if errors.Is(err, errStale) || errors.Is(err, ErrWentBack) {
		return s.rebuild(ctx)
	}
	if err != nil {
		s.doubt() // a part of it may have been followed
	}
	return err
}

// timeIsUp reports whether something is to be done although nobody called.
func (s *Scheduler) timeIsUp() bool {
	f, now := s.fold, s.fold.serving.LastBeat
	return f.sweepDue(now, s.cfg.Sweep) || f.due(now) || f.trialDue(now) || s.rareDue() || s.wakes()
}

// idle answers parked requests whose time is up and returns how long the loop may rest.
func (s *Scheduler) idle() time.Duration {
	if s.correction.due || s.wakes() {
		return time.Millisecond // what came after the grants of this commit may be for those who wait
	}
	now := s.fold.serving.LastBeat
	next := now.Add(serveEvery)
	if s.parked.size > 0 && s.store.Shared() {
		next = now.Add(followEvery)
	}
	ended, over := s.parked.over(now)
	for _, r := range ended {
		r.answer(nil)
	}
	if over != 0 {
		next = min(next, over)
	}
	if at, ok := s.fold.nextLook(s.cfg.Sweep); ok {
		next = min(next, at)
	}
	for _, at := range []lessor.Instant{
		s.fold.dueAt, s.fold.tickAt, s.fold.trialAt, s.fold.retainAt, s.expectAt, s.failing.next(), s.brakeEnd(),
	} {
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
	s.parked.each(func(r *requestCall) { r.answer(nil) })
	s.parked = newParked()
	s.stream.close()
}

// refuse answers ops with what a failed store means to their callers.
func (s *Scheduler) refuse(ops []op, err error) {
	for _, o := range ops {
		if _, beat := o.(*beatCall); beat && storeFailed(err) {
			s.beatsRefused = true
		}
		o.base().answer(storeRefusal(err))
	}
}

// storeFailed reports whether err is the store's and not the calls': a heartbeat that it refused would have been accepted otherwise.
func storeFailed(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrAgain)
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
	case errors.Is(err, ErrWentBack):
		r.Detail = "the store went back to an older state; nothing was changed"
	case errors.Is(err, ErrMoved):
		r.Detail = "the store changed under the call; nothing was changed"
	case errors.Is(err, context.Canceled):
		return errStopping
	case errors.Is(err, errPanicked):
		return errPanicked
	default:
		return err
	}
	return r
}
