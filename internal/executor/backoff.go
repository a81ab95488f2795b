package executor

import (
	"context"
	"errors"
	"strings"
	"time"

	"lessor"
)

// The pauses of a Runner that could not start a job: short at first, for problems that pass by themselves, and long
// when a person has to act.
const (
	firstBackOff = time.Second
	maxBackOff   = time.Minute
	// logAgainAfter is how long the same reason is not logged again.
	logAgainAfter = 10 * time.Minute
	// maxHeldDelay bounds the delay of a job whose folder stays locked.
	maxHeldDelay = 5 * time.Minute
)

// trouble records why a Runner cannot start jobs. Guarded by Runner.mu.
type trouble struct {
	failures   int  // in a row; 0 = none
	trying     bool // a job was asked for since the last of them
	lastLogged string
	loggedAt   time.Time
	logged     bool // the failures in a row were logged
	held       map[lessor.JobID]int
}

// ready waits while jobs cannot be started, and reports whether the Runner may request one. After a failure the
// Runner requests one job at a time, and only when there is space for its files.
func (r *Runner) ready(ctx context.Context) (most int, ok bool) {
	r.mu.Lock()
	failures := r.trouble.failures
	r.mu.Unlock()
	if failures == 0 {
		return maxConcurrency, true
	}
	timer := time.NewTimer(min(firstBackOff<<min(failures-1, 10), maxBackOff))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.better:
		return 0, false
	case <-ctx.Done():
		return 0, false
	}
	err := r.w.Probe()
	r.mu.Lock()
	r.trouble.trying = true
	r.mu.Unlock()
	if err != nil {
		r.cannotStart(err)
		return 0, false
	}
	return 1, true
}

// cannotStart records that a job could not be started, which is not the fault of the job. It is logged once, on
// standard error, because the disk may be full.
func (r *Runner) cannotStart(err error) {
	text := err.Error()
	reason := text[strings.LastIndex(text, ": ")+1:] // without the path, which differs from job to job
	r.mu.Lock()
	t := &r.trouble
	if t.failures == 0 || t.trying { // those that were asked for together are one failure
		t.failures++
		t.trying = false
	}
	log := !t.logged && (t.lastLogged != reason || time.Since(t.loggedAt) >= logAgainAfter)
	if log {
		t.lastLogged, t.loggedAt, t.logged = reason, time.Now(), true
	}
	r.mu.Unlock()
	if log {
		r.cfg.Log.Warn("jobs cannot be started here and are given back at no cost; trying again from time to time",
			"error", err)
	}
}

// started notes that jobs can be started.
func (r *Runner) started(id lessor.JobID) {
	r.mu.Lock()
	wasLogged := r.trouble.logged
	if r.trouble.failures > 0 {
		notify(r.better)
	}
	r.trouble.failures, r.trouble.logged = 0, false
	delete(r.trouble.held, id)
	r.mu.Unlock()
	if wasLogged {
		r.cfg.Log.Info("jobs can be started again")
	}
}

// heldDelay returns the delay of a job whose folder is locked. It grows each time, because only the end of the
// earlier attempt frees the folder.
func (r *Runner) heldDelay(id lessor.JobID) (delay time.Duration, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.trouble
	if t.held == nil || len(t.held) >= maxConcurrency { // jobs that others have taken meanwhile
		t.held = map[lessor.JobID]int{}
	}
	n := t.held[id]
	t.held[id] = n + 1
	return min(releaseDelay<<min(n, 10), maxHeldDelay), n == 0
}

// giveBack releases a lease whose job could not be started because of err, or fails the attempt if the job's folder
// is the reason. If no server takes that, the lease expires.
func (r *Runner) giveBack(ctx context.Context, g lessor.Grant, err error) {
	log := r.cfg.Log.With("job_id", g.Job.ID.String(), "attempt", g.Job.Attempt)
	release := lessor.Release{
		WorkerID: &r.worker, DelayMS: new(releaseDelay.Milliseconds()), Reason: new(lessor.ReleaseCannotStart),
	}
	switch {
	case isOver(err):
		log.Warn("the lease was over before its job was started", "error", err)
		return
	case errors.Is(err, errSpoiled):
		r.failStart(ctx, g.Lease, err)
		return
	case errors.Is(err, errHeld):
		delay, first := r.heldDelay(g.Job.ID)
		release.DelayMS, release.Reason = new(delay.Milliseconds()), new(lessor.ReleaseFolderHeld)
		if first {
			log.Warn("job is given back", "error", err)
		}
	case ctx.Err() != nil, errors.Is(err, errStopping):
		release.DelayMS, release.Reason = nil, new(lessor.ReleaseUndelivered)
	default:
		r.cannotStart(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTry)
	defer cancel()
	if err := r.client.Release(ctx, g.Lease.ID, release); err != nil && !isOver(err) {
		log.Warn("lease is not given back; it runs out", "error", err)
	}
}

// failStart reports that an attempt failed before its shim was started.
func (r *Runner) failStart(ctx context.Context, lease lessor.Lease, err error) {
	log := r.cfg.Log.With("job_id", lease.JobID.String())
	log.Warn("failed", "error", err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTry)
	defer cancel()
	err = r.client.Complete(ctx, lease.ID, lessor.Completion{
		WorkerID: &r.worker, Status: new(string(lessor.Failed)),
		Error: new(cutText("did not begin: "+err.Error(), lessor.MaxErrorText)),
	})
	if err != nil && !isOver(err) {
		log.Warn("the failure is not reported; the lease runs out", "error", err)
	}
}
