package scheduler

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"time"
)

// flight is a commit on its way, over a store that can be sent the next transaction meanwhile (Store.Sends). The fold is ahead of the tables then: it
// holds what the commits will make of them. Their calls are answered when they have landed; if one fails, those that were sent on top of
// it fail too, the fold is rebuilt, and all are repeated as far as they can be.
type pendingCommit struct {
	p     *pass
	w     *work
	dealt []*requestCall // answered when it has landed
	start time.Time
	done  chan struct{} // closed when err is known, and its calls are answered if there is none
	err   error
}

// maxFlights is how many commits may be on their way: one that the store works on, and one behind it.
const maxPending = 2

// crowdedFor is how long a node that met another's changes counts as one of several.
const sharedFor = 10 * time.Second

// alone reports whether the store is one that sends, and no other node works on it now. Among several a node's own work and the database's
// overlap by themselves, and a second transaction would only make batches smaller and the gate dearer.
func (l *loop) soleNode() bool {
	return l.store.Sends() && l.fold.Serving.LastBeat.Sub(l.fold.OthersAt) > l.sharedFor
}

// enough is how many calls must wait for the next transaction to begin. Behind a commit on its way there is time for all whom the last one answered to
// come back: two crowds keep the store busy in turns. What is less goes when the one on its way has landed.
func (l *loop) minCalls() int {
	if len(l.pending) == 0 {
		return max(1, l.linger.calls)
	}
	return max(1, l.answered)
}

// linger is how many calls to wait for, and for how long.
type linger struct {
	calls int
	wait  time.Duration
}

// lingerFrom is how many calls a transaction answers if its node is busy.
const lingerFrom = 64

// crowd answers the hot calls of one of several nodes. A transaction costs them much whatever it carries, and all wait for each other's: a busy node
// lingers after it, a quarter of the time that it took, for those whom it answered to come back.
func (l *loop) commitShared(ctx context.Context, w *work) error {
	start := time.Now()
	if err := l.send(ctx, w, false); err != nil {
		return err
	}
	err := l.awaitAll(ctx)
	if n := w.count(); err == nil && n >= lingerFrom {
		l.linger = linger{n, time.Since(start) / 4}
	}
	return err
}

// fly does the work of the hot calls in one transaction and returns when its commit is on its way.
func (l *loop) send(ctx context.Context, w *work, lone bool) error {
	if len(l.pending) == maxPending {
		if err := l.awaitOldest(ctx); err != nil {
			l.refuse(w.hot(), err)
			return err
		}
	}
	f := &pendingCommit{p: &pass{l: l}, w: w, start: time.Now(), done: make(chan struct{})}
	wait, err := l.store.Send(ctx, lone, func(tx Tx) error {
		return f.p.begin(ctx, tx, func(p *pass) error { return p.run(ctx, w) })
	})
	if err == nil {
		var before <-chan struct{}
		if n := len(l.pending); n > 0 {
			before = l.pending[n-1].done
		}
		l.pending, l.fold.Serving = append(l.pending, f), f.p.served()
		f.dealt = l.park(w.requests, f.p.now)
		go l.await(f, wait, before)
		return nil
	}
	l.observe(f, err)
	if bad := l.awaitAll(ctx); errors.Is(bad, ErrBroken) {
		l.refuse(w.hot(), bad)
		return bad
	}
	return l.retryOrRefuse(ctx, w, err)
}

// await answers the calls of a commit as soon as it has landed, behind those of the one before: the loop may be at work on the next.
func (l *loop) await(f *pendingCommit, wait func() error, before <-chan struct{}) {
	defer close(f.done)
	defer func() {
		if v := recover(); v != nil {
			f.err = panicked{v, debug.Stack()} // the loop refuses who was not answered
		}
	}()
	if f.err = wait(); f.err != nil {
		return // the loop deals with it
	}
	if before != nil {
		<-before
	}
	l.retaining.ended.Add(int64(len(f.p.stats.Ended)))
	l.observe(f, nil)
	l.announce(f.p)
	l.answer(f.p, f.w, f.dealt)
}

// landed returns a channel that is closed when the oldest commit is on its way no more; nil if there is none.
func (l *loop) oldestDone() <-chan struct{} {
	if len(l.pending) == 0 {
		return nil
	}
	return l.pending[0].done
}

// arrive waits for the oldest commit on its way. If it failed, all land.
func (l *loop) awaitOldest(ctx context.Context) error {
	f := l.pending[0]
	<-f.done
	if f.err != nil {
		return l.awaitAll(ctx)
	}
	l.pending = l.pending[1:]
	l.answered = f.w.count()
	return nil
}

// land waits for all commits on their way. It deals with those that failed, and returns why if calls were refused.
func (l *loop) awaitAll(ctx context.Context) error {
	for len(l.pending) > 0 && l.pending[0].wait() == nil {
		_ = l.awaitOldest(ctx) // it did not fail
	}
	failed := slices.DeleteFunc(l.pending, func(f *pendingCommit) bool {
		return f.wait() == nil // though nobody knows of the one before
	})
	l.pending = nil
	l.returnRequests(failed)
	var first error
	for _, f := range failed {
		l.works = append(l.works, f.w)
	}
	for _, f := range failed {
		l.observe(f, f.err)
		if err := l.retryOrRefuse(ctx, f.w, f.err); first == nil {
			first = err
		}
	}
	return first
}

func (f *pendingCommit) wait() error {
	<-f.done
	return f.err
}

// recall takes the requests of commits that failed to where they were before: their own are repeated with them, and those that were parked
// wait on, before those that came later.
func (l *loop) returnRequests(failed []*pendingCommit) {
	own := map[*requestCall]bool{}
	for _, f := range failed {
		for _, r := range f.w.requests {
			own[r] = true
		}
	}
	for _, f := range failed {
		for _, r := range f.dealt {
			if !own[r] {
				l.parked.add(r)
			}
		}
	}
	for r := range own {
		if r.parked {
			l.parked.remove(r)
		}
	}
}

// fall deals with hot calls whose transaction failed: they are repeated if that can help.
func (l *loop) retryOrRefuse(ctx context.Context, w *work, err error) error {
	l.dropFold()
	if !repeatable(err) && !errors.Is(err, ErrBadCall) {
		l.refuse(w.hot(), err)
		return err
	}
	if err := l.rebuild(ctx); err != nil {
		l.refuse(w.hot(), err)
		return err
	}
	return l.commitHot(ctx, w)
}

func (l *loop) observe(f *pendingCommit, err error) {
	f.p.stats.Calls, f.p.stats.Took, f.p.stats.Err = f.w.count(), time.Since(f.start), faultOnly(err)
	f.p.stats.Repeated = conflict(err)
	l.cfg.Observe(f.p.stats)
}
