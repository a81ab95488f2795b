package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// settleTimeout is how long a stopping worker waits for the acknowledgement of its last ends, once its handlers have
// returned or were given up. With the defaults of DrainTimeout and KillGrace the total is 30 s.
const settleTimeout = 5 * time.Second

// drainSlack is how long a stopping worker waits beyond KillGrace: the heartbeat loop must count the handlers that are
// stuck, and handlers that returned late have output to send.
const drainSlack = time.Second

// drain ends all leases. It returns the error that ended the request loop, and what was left behind.
func (w *Worker) drain(ctx context.Context, refused <-chan error) error {
	n := w.beginDrain()
	if n > 0 {
		w.log.Info("Draining: jobs may finish, the rest is given back",
			"running", n, "drain_timeout", w.cfg.DrainTimeout)
	}
	returned := func() bool { return w.running == w.stuck }
	w.wait(ctx, w.cfg.DrainTimeout, returned)
	for _, l := range w.all() {
		w.stop(l, ErrDraining)
	}
	w.wait(ctx, w.cfg.KillGrace+drainSlack, returned)
	err := <-refused
	w.wait(ctx, settleTimeout, func() bool { return len(w.leases) == w.running })
	return errors.Join(err, w.leftBehind())
}

// beginDrain releases the leases whose handlers have not started, and returns how many handlers are running.
func (w *Worker) beginDrain() int {
	defer close(w.draining)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopping = true
	for _, l := range w.leases {
		if l.phase == granted {
			w.freeLocked(l)
			w.finishLocked(l, end{release: true, unstarted: true})
		}
	}
	return w.running
}

func (w *Worker) leftBehind() error {
	w.mu.Lock()
	stuck, unsettled := w.running, len(w.leases)-w.running
	w.mu.Unlock()
	if stuck == 0 {
		w.attempts.Wait()
	}
	if stuck+unsettled == 0 {
		return nil
	}
	return fmt.Errorf("worker: %d handlers did not return and the ends of %d leases were not acknowledged: "+
		"these leases will expire", stuck, unsettled)
}

func (w *Worker) all() []*lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.leases))
}

// wait waits until done returns true, at most for d. It calls done with the mutex locked.
func (w *Worker) wait(ctx context.Context, d time.Duration, done func() bool) {
	timer := time.NewTimer(max(0, d))
	defer timer.Stop()
	for {
		w.mu.Lock()
		ready, changed := done(), w.changedLocked()
		w.mu.Unlock()
		if ready {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
