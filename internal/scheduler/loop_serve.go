package scheduler

import (
	"context"
	"errors"
	"time"

	"lessor"
)

// serveEvery is how often an idle scheduler notes that it serves: a quarter of the gap that moves the floor, so that a
// late timer is not taken for an outage. A busy scheduler notes it twice as often, so that a few slow transactions in
// between do no harm.
const serveEvery = 250 * time.Millisecond

// followEvery is how often a node with waiting requests reads the changes of other nodes, so that these wake them
// within 150 ms.
const followEvery = 100 * time.Millisecond

// retryStore is how long to wait before the fold is rebuilt again after the store failed.
const retryStore = 500 * time.Millisecond

// prepare brings the fold up to date for w, and answers the reads of the loop's state, which need no transaction.
func (l *loop) prepare(ctx context.Context, w *work) error {
	l.checkWentBack()
	if w.empty() || l.fold == nil || l.now().Sub(l.servedAt) > l.pace.Serve/2 {
		if err := l.serve(ctx); err != nil {
			return err
		}
	}
	if len(l.pending) == 0 && (w.empty() || l.now().Sub(l.followedAt) > l.pace.Serve) {
		if err := l.followIdle(ctx); err != nil {
			return err
		}
	}
	if len(w.reads) == 0 {
		return nil
	}
	if err := l.awaitAll(ctx); err != nil {
		return err
	}
	for _, c := range w.reads {
		c.fn(l)
		c.answer(nil)
		if l.fold == nil {
			if err := l.rebuild(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// serve notes that calls can be answered, with a fold that equals the tables.
func (l *loop) serve(ctx context.Context) error {
	if l.beatsRefused {
		if _, err := l.store.Serve(ctx, true); err != nil { // before the tables are read, which may fail too
			_ = l.awaitAll(ctx) // it answers the callers
			l.fold = nil
			return err
		}
		l.beatsRefused = false
	}
	if l.fold == nil {
		if err := l.rebuild(ctx); err != nil {
			return err
		}
	}
	serving, err := l.store.Serve(ctx, false)
	if err != nil {
		// awaitAll answers the callers. A full disk changes nothing: a node that read all tables again for each call
		// that it refuses would only make it slower.
		if failed := l.awaitAll(ctx); failed != nil || !errors.Is(err, ErrFull) {
			l.fold = nil
		}
		return err
	}
	l.fold.Serving, l.servedAt = serving, l.now()
	l.noteFit(serving.LastBeat)
	l.noteClock(serving.LastBeat)
	l.shareStarving(serving.LastBeat)
	l.setStatus(l.now(), nil)
	return nil
}

// wakeByTime reports whether there is work although no call came, and wakes the requests that it may concern.
func (l *loop) wakeByTime() bool {
	f, now := l.fold, l.fold.Serving.LastBeat
	f.NoteClock(now)
	return f.CheckDue(now, l.cfg.Sweep) || f.Due(now) || f.WakeTrials(now) || l.rareDue() || l.wakeParked()
}

// rest answers parked requests whose time is up, and returns after how long the next step is due.
func (l *loop) rest() time.Duration {
	l.notify()
	now := l.fold.Serving.LastBeat
	ended, over := l.parked.over(now, l.now())
	for _, r := range ended {
		r.answer(nil)
	}
	if l.correction.due || l.wakeParked() {
		return time.Millisecond // changes after the grants of this commit may concern parked requests
	}
	next := now.Add(l.pace.Serve)
	if l.parked.size > 0 && l.store.Shared() {
		next = now.Add(l.pace.Follow)
	}
	if over != 0 {
		next = min(next, over)
	}
	if at, ok := l.fold.NextCheck(l.cfg.Sweep); ok {
		next = min(next, at)
	}
	for _, at := range []lessor.Instant{
		l.fold.DueAt, l.fold.TickAt, l.fold.TrialAt, l.retaining.at, l.expectAt, l.failing.next(), l.brakeEnd(),
	} {
		if at != 0 {
			next = min(next, at)
		}
	}
	return max(time.Millisecond, next.Sub(now))
}

// linger is how many calls to wait for, and for how long.
type linger struct {
	calls int
	wait  time.Duration
}

// lingerFrom is how many calls a transaction answers if its node is busy.
const lingerFrom = 64

// minCalls is how many calls must wait before the next transaction begins. Behind a pending commit there is time for
// all callers that the last one answered to call again: two groups of callers keep the store busy in turns. Fewer calls
// are taken when the pending commit has ended.
func (l *loop) minCalls() int {
	if len(l.pending) == 0 {
		return max(1, l.linger.calls)
	}
	return max(1, l.answered)
}

// oldestDone returns a channel that is closed when the oldest pending commit has ended; nil if none is pending.
func (l *loop) oldestDone() <-chan struct{} {
	if len(l.pending) == 0 {
		return nil
	}
	return l.pending[0].done
}
