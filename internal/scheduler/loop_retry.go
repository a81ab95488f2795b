package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"lessor"
	"lessor/internal/fold"
)

// retryOrRefuse deals with hot calls whose commit failed after it was sent: they are repeated if that can help.
func (l *loop) retryOrRefuse(ctx context.Context, w *work, err error) error {
	l.dropFold()
	if !repeatable(err) && !errors.Is(err, ErrBadCall) {
		l.refuse(w.hot(), err)
		return err
	}
	return l.retry(ctx, w.hot())
}

// retryInHalves deals with hot calls whose transaction failed. If the store refused a value, the batch is halved until
// the guilty call stands alone.
func (l *loop) retryInHalves(ctx context.Context, w *work, err error) error {
	ops := w.hot()
	switch {
	case !errors.Is(err, ErrBadCall):
		l.refuse(ops, err)
		return err
	case len(ops) < 2:
		l.refuse(ops, err)
		return l.rebuild(ctx)
	}
	first, second := ops[:len(ops)/2], ops[len(ops)/2:]
	if err := l.retry(ctx, first); err != nil {
		l.refuse(second, err)
		return err
	}
	return l.retry(ctx, second)
}

// retry commits calls again, on a fold that is rebuilt.
func (l *loop) retry(ctx context.Context, ops []op) error {
	if err := l.rebuild(ctx); err != nil {
		l.refuse(ops, err)
		return err
	}
	return l.commitHot(ctx, sortCalls(ops))
}

// returnRequests returns the requests of failed commits to where they were before: a commit's own are repeated with it,
// and those that were parked wait on, before those that came later.
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

// repeatable reports whether a transaction that failed may succeed on a fold that is rebuilt.
func repeatable(err error) bool {
	return conflict(err) || errors.Is(err, ErrWentBack)
}

// conflict reports whether a transaction failed because another node's was first, which is no fault.
func conflict(err error) bool { return errors.Is(err, ErrAgain) || errors.Is(err, fold.ErrStale) }

// dropFold forgets what a failed transaction may have changed in memory.
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

// errPanicked is the answer to calls whose step panicked.
var errPanicked = errors.New("the scheduler met a fault of its own")

// panicked is a panic and its stack.
type panicked struct {
	value any
	stack []byte
}

func (p panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

func (panicked) Unwrap() error { return errPanicked }

// panicPause is the time between the second panic in a row and the next step. It is longer than the gap that moves the
// floor, so that no lease ends because its heartbeats were refused after a panic.
const panicPause = 2 * time.Second

// safely runs one step, and then rests. A panic is a fault of one batch: its calls are refused, the fold is rebuilt,
// and the process goes on, because the leases of others live in it.
func (l *loop) safely(do func() error) (wait time.Duration, err error) {
	l.linger = linger{}
	defer func() {
		if v := recover(); v != nil {
			err = l.recoverFrom(panicked{v, debug.Stack()})
		}
		l.works = nil
		if err != nil {
			l.setStatus(l.now(), err)
			wait = retryStore
		}
	}()
	if err := do(); err != nil {
		return 0, err
	}
	wait = l.rest()
	if l.linger.calls > 0 {
		wait = min(wait, l.linger.wait)
	}
	if l.panics > 0 {
		l.panics = 0
		l.setStatus(l.now(), nil)
	}
	return wait, nil
}

// recoverFrom refuses the calls of a step that panicked, and drops the fold that it may have changed. The store has
// rolled the transaction back.
func (l *loop) recoverFrom(p panicked) error {
	l.panics++
	err := error(p)
	if l.panics > 1 {
		err = fmt.Errorf("%w again, %d times in a row: %v", errPanicked, l.panics, p.value) // the stack is in the first
	}
	for _, f := range l.pending { // await answers those that are durable
		if f.wait() != nil {
			l.refuse(f.w.hot(), err)
		}
	}
	l.pending = nil
	calls := 0
	for _, w := range l.works {
		calls += w.count()
		l.refuse(w.all(), err)
	}
	l.parked.each(func(r *requestCall) {
		if r.state.Load() != callWaiting {
			l.parked.remove(r)
		}
	})
	l.dropFold()
	l.cfg.Observe(Stats{Calls: calls, Err: err})
	return err
}

// pauseAfterPanics waits before the next step if the last ones panicked. It returns false if ctx is done.
func (l *loop) pauseAfterPanics(ctx context.Context) bool {
	if l.panics < 2 {
		return true
	}
	timer := time.NewTimer(panicPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
