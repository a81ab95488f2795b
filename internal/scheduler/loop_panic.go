package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// errPanicked is what callers are told about a panic.
var errPanicked = errors.New("the scheduler met a fault of its own")

// panicked is a panic, with where it happened.
type panicked struct {
	value any
	stack []byte
}

func (p panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

func (panicked) Unwrap() error { return errPanicked }

// panicPause is between the second panic in a row and the next turn. It is longer than the gap that moves the floor, so that
// no lease ends because its heartbeats were answered by a panic.
const panicPause = 2 * time.Second

// safely runs a turn of the loop. A panic is a fault of one batch: its callers are told, the fold is rebuilt, and the
// process goes on, because the leases of others live in it.
func (l *loop) safely(ctx context.Context, do func(context.Context) (time.Duration, error)) (wait time.Duration, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = l.recoverFrom(panicked{v, debug.Stack()})
		}
		l.works = nil
	}()
	wait, err = do(ctx)
	if err == nil && l.panics > 0 {
		l.panics = 0
		l.setStatus(nil)
	}
	return wait, err
}

// survive answers the calls of a turn that panicked, and forgets what it may have done to the fold. The store has rolled
// the transaction back.
func (l *loop) recoverFrom(p panicked) error {
	l.panics++
	err := error(p)
	if l.panics > 1 {
		err = fmt.Errorf("%w again, %d times in a row: %v", errPanicked, l.panics, p.value) // the stack was told
	}
	for _, f := range l.pending { // those that were committed are answered by themselves
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

// calmDown waits before the next turn if the last ones panicked. It returns false if ctx is done.
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
