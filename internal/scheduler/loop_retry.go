package scheduler

import (
	"context"
	"errors"

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
	return l.retry(ctx, w.whole())
}

// retryInHalves deals with hot calls whose transaction failed. If the store refused a value, the batch is halved until
// the call with that value is alone.
func (l *loop) retryInHalves(ctx context.Context, w *work, err error) error {
	ops := w.whole()
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

// returnRequests puts the requests of failed commits back: new requests are repeated with their commit, and parked
// requests are parked again, in front of later ones, unless their worker may hold what they got.
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
		if errors.Is(f.err, ErrUnknownOutcome) {
			l.refuseGranted(f.err)
		}
	}
	for r := range own {
		if r.parked {
			l.parked.remove(r)
		}
	}
}

// refuseGranted answers the parked requests with grants of a commit whose outcome is unknown, as it answers new ones.
// Otherwise they would wait for jobs that their workers may hold already.
func (l *loop) refuseGranted(err error) {
	l.parked.each(func(r *requestCall) {
		if len(r.grants) > 0 {
			l.parked.remove(r)
			l.refuse([]op{r}, err)
		}
	})
}

// repeatable reports whether a transaction that failed may succeed on a fold that is rebuilt.
func repeatable(err error) bool {
	return conflict(err) || errors.Is(err, ErrWentBack) || errors.Is(err, ErrDisconnected)
}

// conflict reports whether a transaction failed because another node's was first, which is no fault.
func conflict(err error) bool { return errors.Is(err, ErrAgain) || errors.Is(err, fold.ErrStale) }

// dropFold forgets what a failed transaction may have changed in memory.
func (l *loop) dropFold() {
	l.fold = nil
	l.parked.each(func(r *requestCall) { r.grants = nil }) // they were not committed; its last denial still holds
}

// faultOnly returns nil for a refusal, which is an answer and not a failure of the commit.
func faultOnly(err error) error {
	if _, refused := errors.AsType[*lessor.Error](err); refused {
		return nil
	}
	return err
}
