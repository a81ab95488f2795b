package scheduler

import (
	"context"
	"errors"
	"time"

	"lessor"
)

// commit answers w: everything that is hot in one transaction, each rare change in one of its own.
func (s *Scheduler) commit(ctx context.Context, w *work) error {
	err := s.start(ctx, w)
	if err == nil && (len(w.changes) > 0 || s.rareDue()) {
		err = s.land(ctx)
	}
	if err != nil {
		for _, c := range w.changes {
			c.answer(storeRefusal(err))
		}
		return err
	}
	for i, c := range w.changes {
		if err := s.commitChange(ctx, c); err != nil {
			for _, c := range w.changes[i+1:] {
				c.answer(storeRefusal(err))
			}
			return err
		}
	}
	if s.wentBack != "" {
		if err := s.tellWentBack(ctx); err != nil {
			return err
		}
	}
	if s.correction.due {
		if err := s.correct(ctx); err != nil {
			return err
		}
	}
	if s.tickDue() {
		if err := s.tick(ctx); err != nil {
			return err
		}
	}
	if s.missDue() {
		if err := s.miss(ctx); err != nil {
			return err
		}
	}
	if s.failedDue() {
		if err := s.tellFailed(ctx); err != nil {
			return err
		}
	}
	if s.brakeIsOver() {
		if err := s.clearBrake(ctx); err != nil {
			return err
		}
	}
	if s.retainDue() {
		return s.retain(ctx)
	}
	return nil
}

// rareDue reports whether something besides the hot calls has a transaction of its own now.
func (s *Scheduler) rareDue() bool {
	return s.correction.due || s.wentBack != "" || s.tickDue() || s.missDue() || s.failedDue() || s.brakeIsOver() || s.retainDue()
}

// start answers the hot calls, or has their commit on its way.
func (s *Scheduler) start(ctx context.Context, w *work) error {
	if s.alone() {
		return s.fly(ctx, w, true)
	}
	if err := s.land(ctx); err != nil {
		s.refuse(w.hot(), err)
		return err
	}
	if s.sender == nil {
		return s.commitHot(ctx, w)
	}
	return s.crowd(ctx, w)
}

// commitHot answers submissions, heartbeats, ends and requests in one transaction. When the store refuses a value, the batch
// is halved until the guilty call stands alone.
func (s *Scheduler) commitHot(ctx context.Context, w *work) error {
	ops := w.hot()
	p, err := s.transact(ctx, len(ops), func(p *pass) error { return p.run(ctx, w) })
	switch {
	case err == nil:
		s.tell(p, w, s.park(w.requests, p.now))
		return nil
	case !errors.Is(err, ErrBadCall):
		s.refuse(ops, err)
		return err
	case len(ops) < 2:
		s.refuse(ops, err)
		return s.rebuild(ctx)
	}
	first, second := ops[:len(ops)/2], ops[len(ops)/2:]
	if err := s.commitHalf(ctx, first); err != nil {
		s.refuse(second, err)
		return err
	}
	return s.commitHalf(ctx, second)
}

// commitHalf answers a part of a batch that failed, on a fold that is in no doubt.
func (s *Scheduler) commitHalf(ctx context.Context, ops []op) error {
	if err := s.rebuild(ctx); err != nil {
		s.refuse(ops, err)
		return err
	}
	return s.commitHot(ctx, s.sort(ops))
}

// commitChange runs one rare call. A refusal is its answer, and not a failure of the store.
func (s *Scheduler) commitChange(ctx context.Context, c *changeCall) error {
	p, err := s.transact(ctx, 1, func(p *pass) error {
		if err := c.fn(ctx, p); err != nil {
			return err
		}
		if err := p.judge(ctx); err != nil {
			return err
		}
		return p.flush(ctx)
	})
	if err == nil {
		s.stream.publish(p.events)
		c.answer(nil)
		return nil
	}
	c.answer(storeRefusal(err))
	if faultOnly(err) == nil {
		return nil
	}
	return err
}

// maxTries bounds how often a batch that met other nodes' is repeated before its callers are told.
const maxTries = 5

// transact runs fn in one transaction, and again when it met another node's and lost. After any failure the fold is in doubt and
// is rebuilt before it is used again.
func (s *Scheduler) transact(ctx context.Context, calls int, fn func(p *pass) error) (*pass, error) {
	for try := 1; ; try++ {
		start := time.Now()
		p := &pass{s: s}
		err := s.store.Update(ctx, func(tx Tx) error { return p.begin(ctx, tx, fn) })
		p.stats.Calls, p.stats.Took, p.stats.Err = calls, time.Since(start), faultOnly(err)
		s.cfg.Observe(p.stats)
		if err == nil {
			s.retaining.ended.Add(int64(len(p.stats.Ended)))
			s.fold.serving = p.served()
			s.announce(p)
			return p, nil
		}
		if p.stats.Err == nil { // refused before anything was changed: the fold is as it was
			s.fold.delta = nil
			return nil, err
		}
		s.doubt()
		if try == maxTries || !repeatable(err) {
			return nil, err
		}
		if err := s.rebuild(ctx); err != nil {
			return nil, err
		}
	}
}

// repeatable reports whether a transaction failed in such a way that it may succeed on a fold that is rebuilt.
func repeatable(err error) bool {
	return errors.Is(err, ErrAgain) || errors.Is(err, errStale) || errors.Is(err, ErrWentBack)
}

// announce tells about the alerts of a commit that is durable, and counts the jobs that failed in it.
func (s *Scheduler) announce(p *pass) {
	for _, a := range p.alerts {
		s.cfg.Alert(a)
	}
	s.failing.count(p.failed)
}

// doubt forgets what a failed transaction may have changed in memory.
func (s *Scheduler) doubt() {
	s.fold = nil
	s.parked.each(func(r *requestCall) { r.grants = nil }) // they were not committed; its last denial still holds
}

// faultOnly is nil for a refusal: it is an answer, not a failure of the commit.
func faultOnly(err error) error {
	if _, refused := errors.AsType[*lessor.Error](err); refused {
		return nil
	}
	return err
}

// tell answers the calls of a commit that is durable, among them the requests that were dealt with, and tells those who follow the records.
func (s *Scheduler) tell(p *pass, w *work, dealt []*requestCall) {
	for _, c := range w.beats {
		c.answer(nil)
	}
	for _, c := range w.submits {
		c.answer(c.err)
	}
	for _, c := range w.ends {
		c.answer(nil)
	}
	for _, r := range dealt {
		if !r.answer(nil) {
			s.giveBack(r)
		}
	}
	s.stream.publish(p.events)
}
