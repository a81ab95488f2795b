package worker

import (
	"context"
	"time"

	"lessor"
)

// cancelHold is how long the server is asked to hold a call that waits for leases that must stop: the most it allows.
const cancelHold = 30 * time.Second

// cancelLoop stops the handlers of cancelled jobs and of leases that were taken away, and fetches messages, as soon as
// the server reports them, until ctx is done. It ends early if the server refuses the call, as servers of an older
// release do: heartbeats bring the same news later.
func (w *Worker) cancelLoop(ctx context.Context) {
	for failures := 0; w.awaitLeases(ctx); {
		found, err := w.cfg.Client.Cancelled(ctx, w.cfg.ID, cancelHold)
		switch {
		case err == nil:
			failures = 0
			w.cancelled(found.LeaseIDs)
			w.askAbout(ctx, found.EndedIDs, func(l *lease) bool { return l.phase != ending })
			w.askAbout(ctx, found.MessagedIDs, (*lease).listens)
		case !transient(err):
			return
		default:
			failures++
			pauseAbout(ctx, max(lessor.RetryPause(failures), retryAfter(err)))
		}
	}
}

// awaitLeases waits until the worker has a lease, and reports whether ctx is still alive.
func (w *Worker) awaitLeases(ctx context.Context) bool {
	for ctx.Err() == nil {
		w.mu.Lock()
		n, changed := len(w.leases), w.changedLocked()
		w.mu.Unlock()
		if n > 0 {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return false
}

func (w *Worker) cancelled(ids []lessor.LeaseID) {
	for _, id := range ids {
		w.mu.Lock()
		l := w.leases[id]
		w.mu.Unlock()
		if l != nil {
			w.stop(l, ErrCancelled)
		}
	}
}

// listens reports whether a heartbeat may fetch a message. Messages keep no work alive that has stalled, unless it
// waits for them.
func (l *lease) listens() bool { return l.extendable() || !l.gone && !l.stuck && l.inbox.awaited() }

// askAbout sends a heartbeat for the leases that may be extended. The answer says why a lease has ended, or has the
// messages.
func (w *Worker) askAbout(ctx context.Context, ids []lessor.LeaseID, may func(*lease) bool) {
	var r round
	w.mu.Lock()
	for _, id := range ids {
		if l := w.leases[id]; l != nil && may(l) {
			r.beats = append(r.beats, w.newBeatCall(l))
		}
	}
	w.mu.Unlock()
	w.carryOut(ctx, r)
}
