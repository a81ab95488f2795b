package executor

import (
	"context"
	"fmt"
	"strings"

	"lessor"
	"lessor/internal/pause"
)

// RunOne runs the command for one live lease, which Config.Worker holds, to its end. It returns the id, the state and
// the error with which the job ended here. The state is empty if the command left no exit record, because it was
// stopped and given back, or the lease was over. When ctx is done, RunOne does what OnStop says. An error means that
// the command was not run.
//
// A lease has one attempt: if it was begun here before, by a container that was restarted, RunOne only reports its exit
// record.
func (r *Runner) RunOne(ctx context.Context, id lessor.LeaseID) (lessor.Job, error) {
	r.worker = r.cfg.Worker
	g, err := r.grantOf(ctx, id)
	if err != nil {
		return lessor.Job{}, err
	}
	r.findLifetime(ctx)
	following, unfollow := context.WithCancel(context.WithoutCancel(ctx))
	defer r.shims.Wait()
	defer unfollow()
	r.reap(following)
	switch job := g.Job.ID; {
	case r.lastLease(job).ID != id:
		r.take(ctx, following, g)
	case r.isHeld(job):
		r.adopt(following, g.Lease)
	default:
		r.cfg.Log.Warn("the lease has had its command here; without an exit record it expires, and the job is retried",
			"job_id", job.String())
		r.beside(g.Lease, func() { r.conclude(following, g.Lease) })
	}
	for r.running() > 0 && ctx.Err() == nil {
		select {
		case <-r.freed:
		case <-ctx.Done():
			r.atStop(following)
		}
	}
	status, how, _ := strings.Cut(r.lastEnd(g.Job.ID), " ")
	return lessor.Job{ID: g.Job.ID, State: lessor.State(status), Error: &how}, nil
}

// grantOf returns a live lease of this worker and its job, as soon as a server answers.
func (r *Runner) grantOf(ctx context.Context, id lessor.LeaseID) (g lessor.Grant, err error) {
	for failures := 1; ; failures++ {
		g, err = r.findGrant(ctx, id)
		if err == nil || isFinal(err) {
			return g, err
		}
		if failures == 1 {
			r.cfg.Log.Warn("no server answers, trying again", "error", err)
		}
		if !pause.For(ctx, retryPause(failures)) {
			return g, err
		}
	}
}

func (r *Runner) findGrant(ctx context.Context, id lessor.LeaseID) (g lessor.Grant, err error) {
	for lease, err := range r.client.AllLeases(ctx, r.worker) {
		if err != nil {
			return g, err
		}
		if lease.ID == id {
			job, err := r.client.Job(ctx, lease.JobID)
			return lessor.Grant{Lease: lease, Job: job}, err
		}
	}
	return g, &lessor.Error{
		Code: lessor.CodeLeaseNotFound,
		Detail: fmt.Sprintf("worker %s has no live lease %s: it has ended, or was taken by another worker or token",
			r.worker, id),
	}
}
