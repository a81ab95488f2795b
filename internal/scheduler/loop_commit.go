package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lessor/internal/fault"
)

// rareWork is work that has a transaction of its own.
type rareWork struct {
	due func() bool
	do  func(context.Context) error
}

// commit answers w: its hot calls share one transaction, and each rare change has one of its own.
func (l *loop) commit(ctx context.Context, w *work) error {
	err := l.commitCalls(ctx, w)
	if err == nil && len(w.changes) > 0 {
		err = l.awaitAll(ctx)
	}
	for _, c := range w.changes {
		if err != nil {
			c.answer(storeRefusal(err))
		} else {
			err = l.commitChange(ctx, c)
		}
	}
	for _, r := range l.rare {
		if err == nil && len(l.pending) > 0 && r.due() {
			err = l.awaitAll(ctx) // Update must not build on a commit whose end is unknown
		}
		if err == nil && r.due() {
			err = r.do(ctx)
		}
	}
	return err
}

// rareDue reports whether something besides the calls has a transaction of its own now.
func (l *loop) rareDue() bool {
	return slices.ContainsFunc(l.rare, func(r rareWork) bool { return r.due() })
}

// commitCalls answers the hot calls, or sends their commit. A sole node works on the next batch while the commit of
// this one is pending.
func (l *loop) commitCalls(ctx context.Context, w *work) error {
	if l.soleNode() {
		return l.send(ctx, w, Sole)
	}
	if err := l.awaitAll(ctx); err != nil {
		l.refuse(w.hot(), err)
		return err
	}
	return l.commitShared(ctx, w)
}

// sharedFor is how long a node that applied another's changes counts as one of several.
const sharedFor = 10 * time.Second

// soleNode reports whether no other node works on the store now. Among several nodes the work of a
// node and of the database overlap anyway: a second transaction would only make batches smaller and the gate more
// expensive.
func (l *loop) soleNode() bool {
	return l.fold.Serving.LastBeat.Sub(l.fold.OthersAt) > l.pace.Shared
}

// commitHot answers submissions, heartbeats, ends and requests in one transaction.
func (l *loop) commitHot(ctx context.Context, w *work) error {
	p, err := l.transact(ctx, w.count(), func(p *pass) error { return p.run(ctx, w) })
	if err != nil {
		return l.retryInHalves(ctx, w, err)
	}
	l.answer(w, l.park(w.requests, p.now))
	return nil
}

// commitChange runs one rare call. A refusal is its answer, and not a failure of the store.
func (l *loop) commitChange(ctx context.Context, c *changeCall) error {
	_, err := l.transact(ctx, 1, func(p *pass) error {
		if err := c.fn(ctx, p); err != nil {
			return err
		}
		if err := p.judge(ctx); err != nil {
			return err
		}
		return p.flush(ctx)
	})
	if err == nil {
		c.answer(nil)
		return nil
	}
	c.answer(storeRefusal(err))
	return faultOnly(err)
}

// maxTries bounds how often a batch that lost against other nodes' is repeated before its calls are refused.
const maxTries = 5

// transact runs fn in one transaction, and again when it lost against another node's. After any failure the fold is
// dropped, and rebuilt before it is used again.
func (l *loop) transact(ctx context.Context, calls int, fn func(p *pass) error) (*pass, error) {
	for try := 1; ; try++ {
		p, start := &pass{l: l}, l.now()
		err := l.store.Update(ctx, func(tx Tx) error { return p.begin(ctx, tx, fn) })
		l.observe(p, calls, start, err, try < maxTries)
		if err == nil {
			l.fold.Serving = p.served()
			l.publish(p)
			return p, nil
		}
		if p.stats.Err == nil { // refused before anything was changed: the fold is as it was
			l.fold.Recorded()
			return nil, err
		}
		if errors.Is(err, ErrUnknownOutcome) {
			l.refuseGranted(err)
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

// pendingCommit is a commit that was sent and is not durable yet. The fold is ahead of the tables then: it holds what
// the commit will make of them. Its calls are answered when it is durable; if it fails, those that were sent after it
// fail too, the fold is rebuilt, and all are repeated as far as they can be.
type pendingCommit struct {
	p     *pass
	w     *work
	dealt []*requestCall // the requests that it answers
	start time.Time
	done  chan struct{} // closed when err is known and, without an error, its calls are answered
	err   error
}

// maxPending is how many commits may be pending: one that the store works on, and one behind it.
const maxPending = 2

// commitShared answers the hot calls when several nodes share the store. A transaction is expensive whatever its size,
// and nodes wait for each other's transactions. So a busy node pauses after its own transaction, for up to a quarter of
// its duration, until the callers that it answered call again.
func (l *loop) commitShared(ctx context.Context, w *work) error {
	start := l.now()
	if err := l.send(ctx, w, Shared); err != nil {
		return err
	}
	err := l.awaitAll(ctx)
	if n := w.taken; err == nil && n >= lingerFrom {
		l.linger = linger{n, l.now().Sub(start) / 4}
	}
	return err
}

// send does the work of the hot calls in one transaction and returns when its commit is pending.
func (l *loop) send(ctx context.Context, w *work, on Footing) error {
	if len(l.pending) == maxPending {
		if err := l.awaitOldest(ctx); err != nil {
			l.refuse(w.hot(), err)
			return err
		}
	}
	if len(l.pending) > 0 {
		on = Behind
	}
	c := &pendingCommit{p: &pass{l: l}, w: w, start: l.now(), done: make(chan struct{})}
	wait, err := l.store.Send(ctx, on, func(tx Tx) error {
		return c.p.begin(ctx, tx, func(p *pass) error { return p.run(ctx, w) })
	})
	if err != nil {
		l.observe(c.p, w.count(), c.start, err, true)
		if bad := l.awaitAll(ctx); errors.Is(bad, ErrBroken) {
			l.refuse(w.hot(), bad)
			return bad
		}
		return l.retryOrRefuse(ctx, w, err)
	}
	var before <-chan struct{}
	if n := len(l.pending); n > 0 {
		before = l.pending[n-1].done
	}
	l.pending, l.fold.Serving = append(l.pending, c), c.p.served()
	c.dealt = l.park(w.requests, c.p.now)
	l.machine.Go(func() { l.await(c, wait, before) })
	return nil
}

// await answers the calls of a commit as soon as it is durable, after those of the commit before it: the loop may be at
// work on the next.
func (l *loop) await(c *pendingCommit, wait func() error, before <-chan struct{}) {
	defer close(c.done)
	defer func() {
		if v := recover(); v != nil {
			f := fault.Of(fault.Loop, v)
			f.Calls = describe(nil, c.w.hot())
			l.cfg.Fault(f)
			c.err = fmt.Errorf("%w: %w", errPanicked, f) // the loop refuses the calls that were not answered
		}
	}()
	if c.err = wait(); c.err != nil {
		return // awaitAll deals with it
	}
	if before != nil {
		l.machine.Await(context.Background(), before)
	}
	l.observe(c.p, c.w.count(), c.start, nil, false)
	l.answer(c.w, c.dealt)
	l.publish(c.p)
}

// observe reports a commit; again says that it is repeated after a conflict. If the commit is durable, observe also
// wakes the callers that wait for it, announces its alerts and counts the jobs that failed in it.
func (l *loop) observe(p *pass, calls int, start time.Time, err error, again bool) {
	p.stats.Calls, p.stats.Took, p.stats.Err = calls, l.now().Sub(start), faultOnly(err)
	p.stats.Repeated = again && conflict(err)
	l.cfg.Observe(p.stats)
	if err != nil {
		return
	}
	l.waits.wake(p.toWake)
	l.cancels.add(p.called, p.now)
	l.retaining.ended.Add(int64(len(p.stats.Ended)))
	for _, a := range p.alerts {
		l.cfg.Alert(a)
	}
	l.failing.count(p.failed)
}

// answer answers the calls of a durable commit and the requests that it dealt with.
func (l *loop) answer(w *work, dealt []*requestCall) {
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
}

// awaitOldest waits for the oldest pending commit. If it failed, it waits for all.
func (l *loop) awaitOldest(ctx context.Context) error {
	c := l.pending[0]
	if c.wait() != nil {
		return l.awaitAll(ctx)
	}
	l.pending = l.pending[1:]
	l.answered = c.w.taken
	return nil
}

// awaitAll waits for all pending commits. It repeats those that failed, and returns an error if calls were refused.
func (l *loop) awaitAll(ctx context.Context) error {
	for len(l.pending) > 0 && l.pending[0].wait() == nil {
		_ = l.awaitOldest(ctx) // it did not fail
	}
	failed := slices.DeleteFunc(l.pending, func(c *pendingCommit) bool {
		return c.wait() == nil // durable, although the outcome of the one before is unknown
	})
	l.pending = nil
	l.returnRequests(failed)
	var first error
	for _, c := range failed {
		l.works = append(l.works, c.w)
	}
	for _, c := range failed {
		l.observe(c.p, c.w.count(), c.start, c.err, true)
		if err := l.retryOrRefuse(ctx, c.w, c.err); first == nil {
			first = err
		}
	}
	return first
}

func (c *pendingCommit) wait() error {
	c.p.l.machine.Await(context.Background(), c.done)
	return c.err
}
