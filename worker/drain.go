package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// settleTimeout is how long a worker that stops waits for its last ends to be acknowledged, once every handler has returned
// or was given up. Together with the defaults of DrainTimeout and KillGrace it stays within 30 s.
const settleTimeout = 5 * time.Second

// drain ends everything that is held. It returns what ended the requesting loop, and what had to be left.
func (w *Worker) drain(ctx context.Context, asked <-chan error) error {
	n := w.beginDrain()
	if n > 0 {
		w.log.Info("Draining: jobs may finish, the rest is given back", "running", n, "drain_timeout", w.cfg.DrainTimeout)
	}
	returned := func() bool { return w.running == w.stuck }
	w.wait(ctx, w.cfg.DrainTimeout, returned)
	for _, l := range w.all() {
		w.stop(l, ErrDraining)
	}
	w.wait(ctx, w.cfg.KillGrace+time.Second, returned) // the heartbeat loop finds out who does not obey
	refused := <-asked
	w.wait(ctx, settleTimeout, func() bool { return len(w.held) == w.running })
	return errors.Join(refused, w.leftBehind())
}

// beginDrain gives back the leases whose handlers have not begun, and returns how many handlers run.
func (w *Worker) beginDrain() int {
	defer close(w.draining)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopping = true
	for _, l := range w.held {
		if l.phase == granted {
			w.freeLocked(l)
			w.finishLocked(l, end{release: true, unstarted: true})
		}
	}
	return w.running
}

func (w *Worker) leftBehind() error {
	w.mu.Lock()
	stuck, unsettled := w.running, len(w.held)-w.running
	w.mu.Unlock()
	if stuck == 0 {
		w.attempts.Wait()
	}
	if stuck+unsettled == 0 {
		return nil
	}
	return fmt.Errorf("worker: %d handlers did not return and the ends of %d leases were not acknowledged: these leases will expire",
		stuck, unsettled)
}

func (w *Worker) all() []*held {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.held))
}

// wait waits until done, which is called with the lock held, or for at most d.
func (w *Worker) wait(ctx context.Context, d time.Duration, done func() bool) {
	timer := time.NewTimer(max(0, d))
	defer timer.Stop()
	for {
		w.mu.Lock()
		ready, changed := done(), w.changed
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
