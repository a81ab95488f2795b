package scheduler

import (
	"context"
	"errors"
	"time"

	"lessor"
)

var errStopping = &lessor.Error{Code: lessor.CodeUnavailable, Detail: "the server is stopping", RetryAfter: time.Second}

// refuseAll refuses all waiting calls when the loop has ended.
func (l *loop) refuseAll() {
	l.setStatus(l.now(), errStopping)
	l.refuse(l.calls.Close(), errStopping)
	l.parked.each(func(r *requestCall) { r.answer(nil) })
	l.parked = newParked()
	l.stream.close()
}

// refuse answers calls whose transaction failed.
func (l *loop) refuse(ops []op, err error) {
	for _, o := range ops {
		if t, ok := o.(*turnCall); ok {
			l.refuse(t.parts, err)
			continue
		}
		if _, beat := o.(*beatCall); beat && storeFailed(err) {
			l.beatsRefused = true
		}
		o.base().answer(storeRefusal(err))
	}
}

// storeFailed reports whether err is a fault of the store, or of our own, and not of the calls: without it, a heartbeat
// that was refused would have been accepted.
func storeFailed(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrAgain) ||
		errors.Is(err, errPanicked)
}

// storeRefusal turns a store's fault into what a caller can act on; other faults pass as they are.
func storeRefusal(err error) error {
	r := &lessor.Error{Code: lessor.CodeUnavailable, RetryAfter: time.Second}
	switch {
	case errors.Is(err, ErrUnknownOutcome):
		r.Detail, r.OutcomeUnknown = "the answer to the commit was lost; repeat with the same key", true
	case errors.Is(err, ErrFull):
		r.Detail = "the disk of the store is full; nothing was changed"
	case errors.Is(err, ErrUnreachable):
		r.Detail = "the store is out of reach; nothing was changed"
	case errors.Is(err, ErrBroken):
		r.Detail = "the store reported an I/O error, and the server stops; repeat with the same key"
		r.OutcomeUnknown = true // what was written before a failed fsync may be there after a restart
	case errors.Is(err, ErrWentBack):
		r.Detail = "the store went back to an older state; nothing was changed"
	case errors.Is(err, ErrMoved):
		r.Detail = "the store changed under the call; nothing was changed"
	case conflict(err):
		r.Detail = "other nodes kept changing the same rows; nothing was changed"
	case errors.Is(err, context.Canceled):
		return errStopping
	case errors.Is(err, errPanicked):
		return errPanicked
	default:
		return err
	}
	return r
}
