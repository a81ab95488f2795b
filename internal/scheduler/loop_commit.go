package scheduler

import (
	"context"
	"errors"
	"time"

	"lessor"
	"lessor/internal/fold"
)

// commit answers w: everything that is hot in one transaction, each rare change in one of its own.
func (l *loop) commit(ctx context.Context, w *work) error {
	err := l.start(ctx, w)
	if err == nil && (len(w.changes) > 0 || l.rareDue()) {
		err = l.awaitAll(ctx)
	}
	if err != nil {
		for _, c := range w.changes {
			c.answer(storeRefusal(err))
		}
		return err
	}
	for i, c := range w.changes {
		if err := l.commitChange(ctx, c); err != nil {
			for _, c := range w.changes[i+1:] {
				c.answer(storeRefusal(err))
			}
			return err
		}
	}
	if l.wentBack != "" {
		if err := l.raiseWentBack(ctx); err != nil {
			return err
		}
	}
	if l.correction.due {
		if err := l.correct(ctx); err != nil {
			return err
		}
	}
	if l.tickDue() {
		if err := l.tick(ctx); err != nil {
			return err
		}
	}
	if l.missingDue() {
		if err := l.raiseMissing(ctx); err != nil {
			return err
		}
	}
	if l.failedDue() {
		if err := l.raiseFailed(ctx); err != nil {
			return err
		}
	}
	if l.brakeIsOver() {
		if err := l.clearBrake(ctx); err != nil {
			return err
		}
	}
	if l.retainDue() {
		return l.retain(ctx)
	}
	return nil
}

// rareDue reports whether something besides the hot calls has a transaction of its own now.
func (l *loop) rareDue() bool {
	return l.correction.due || l.wentBack != "" || l.tickDue() || l.missingDue() || l.failedDue() || l.brakeIsOver() || l.retainDue()
}

// start answers the hot calls, or has their commit on its way.
func (l *loop) start(ctx context.Context, w *work) error {
	if l.soleNode() {
		return l.send(ctx, w, true)
	}
	if err := l.awaitAll(ctx); err != nil {
		l.refuse(w.hot(), err)
		return err
	}
	if !l.store.Sends() {
		return l.commitHot(ctx, w)
	}
	return l.commitShared(ctx, w)
}

// commitHot answers submissions, heartbeats, ends and requests in one transaction. When the store refuses a value, the batch
// is halved until the guilty call stands alone.
func (l *loop) commitHot(ctx context.Context, w *work) error {
	ops := w.hot()
	p, err := l.transact(ctx, len(ops), func(p *pass) error { return p.run(ctx, w) })
	switch {
	case err == nil:
		l.answer(p, w, l.park(w.requests, p.now))
		return nil
	case !errors.Is(err, ErrBadCall):
		l.refuse(ops, err)
		return err
	case len(ops) < 2:
		l.refuse(ops, err)
		return l.rebuild(ctx)
	}
	first, second := ops[:len(ops)/2], ops[len(ops)/2:]
	if err := l.commitHalf(ctx, first); err != nil {
		l.refuse(second, err)
		return err
	}
	return l.commitHalf(ctx, second)
}

// commitHalf answers a part of a batch that failed, on a fold that is in no doubt.
func (l *loop) commitHalf(ctx context.Context, ops []op) error {
	if err := l.rebuild(ctx); err != nil {
		l.refuse(ops, err)
		return err
	}
	return l.commitHot(ctx, l.sort(ops))
}

// commitChange runs one rare call. A refusal is its answer, and not a failure of the store.
func (l *loop) commitChange(ctx context.Context, c *changeCall) error {
	p, err := l.transact(ctx, 1, func(p *pass) error {
		if err := c.fn(ctx, p); err != nil {
			return err
		}
		if err := p.judge(ctx); err != nil {
			return err
		}
		return p.flush(ctx)
	})
	if err == nil {
		l.stream.publish(p.events)
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
func (l *loop) transact(ctx context.Context, calls int, fn func(p *pass) error) (*pass, error) {
	for try := 1; ; try++ {
		start := time.Now()
		p := &pass{l: l}
		err := l.store.Update(ctx, func(tx Tx) error { return p.begin(ctx, tx, fn) })
		p.stats.Calls, p.stats.Took, p.stats.Err = calls, time.Since(start), faultOnly(err)
		p.stats.Repeated = try < maxTries && conflict(err)
		l.cfg.Observe(p.stats)
		if err == nil {
			l.retaining.ended.Add(int64(len(p.stats.Ended)))
			l.fold.Serving = p.served()
			l.announce(p)
			return p, nil
		}
		if p.stats.Err == nil { // refused before anything was changed: the fold is as it was
			l.fold.Recorded()
			return nil, err
		}
		l.dropFold()
		if try == maxTries || !repeatable(err) {
			return nil, err
		}
		if err := l.rebuild(ctx); err != nil {
			return nil, err
		}
	}
}

// repeatable reports whether a transaction failed in such a way that it may succeed on a fold that is rebuilt.
func repeatable(err error) bool {
	return conflict(err) || errors.Is(err, ErrWentBack)
}

// conflict reports whether a transaction failed because another node's was first, which is no fault.
func conflict(err error) bool { return errors.Is(err, ErrAgain) || errors.Is(err, fold.ErrStale) }

// announce tells about the alerts of a commit that is durable, and counts the jobs that failed in it.
func (l *loop) announce(p *pass) {
	for _, a := range p.alerts {
		l.cfg.Alert(a)
	}
	l.failing.count(p.failed)
}

// doubt forgets what a failed transaction may have changed in memory.
func (l *loop) dropFold() {
	l.fold = nil
	l.parked.each(func(r *requestCall) { r.grants = nil }) // they were not committed; its last denial still holds
}

// faultOnly is nil for a refusal: it is an answer, not a failure of the commit.
func faultOnly(err error) error {
	if _, refused := errors.AsType[*lessor.Error](err); refused {
		return nil
	}
	return err
}

// tell answers the calls of a commit that is durable, among them the requests that were dealt with, and tells those who follow the records.
func (l *loop) answer(p *pass, w *work, dealt []*requestCall) {
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
			l.giveBack(r)
		}
	}
	l.stream.publish(p.events)
}
