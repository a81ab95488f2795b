package executor

import (
	"context"
	"time"

	"lessor"
)

// OnStop says what becomes of running commands when their Runner is told to stop.
type OnStop string

const (
	// OnStopAuto leaves commands that outlive the Runner, and stops those that would be killed with it.
	OnStopAuto OnStop = "auto"
	// OnStopLeave leaves them running, without the Runner.
	OnStopLeave OnStop = "leave"
	// OnStopStop stops them and gives their leases back, which costs the jobs no attempt.
	OnStopStop OnStop = "stop"
)

// OnStops lists them.
func OnStops() []OnStop { return []OnStop{OnStopAuto, OnStopLeave, OnStopStop} }

const (
	// defaultStopGrace is the shortest time that a common platform gives: that of `docker stop`.
	defaultStopGrace = 10 * time.Second
	// stopReserve is the part of the stop grace that is left when the last command is killed: to notice the stop, to
	// give the leases back and to exit.
	stopReserve = 2 * time.Second
	// instructAgain is how often a stop is repeated, for shims that were about to be started.
	instructAgain = time.Second
)

// atStop stops the running commands, waits for them, or leaves them.
func (r *Runner) atStop(following context.Context) {
	r.sayWhatContinues()
	if r.lifetime.stops {
		r.stopCommands(following)
	}
	for r.cfg.Wait && !r.lifetime.stops && r.running() > 0 {
		<-r.freed
	}
}

// maxNamed bounds the jobs that one log line names.
const maxNamed = 10

// sayWhatContinues logs which commands continue when the Runner stops.
func (r *Runner) sayWhatContinues() {
	jobs := r.liveJobs()
	attrs := []any{"running", len(jobs), "jobs", jobs[:min(len(jobs), maxNamed)]}
	switch {
	case len(jobs) == 0:
		r.cfg.Log.Info("stopping; no command is running")
	case r.lifetime.stops:
		r.cfg.Log.Info("stopping the running commands and giving their jobs back, which costs no attempt",
			append(attrs, "stop_grace", r.cfg.StopGrace)...)
	case r.cfg.Wait:
		r.cfg.Log.Info("stopping when the running commands have ended; "+
			"after another signal they continue without this program", attrs...)
	default:
		r.cfg.Log.Info("stopping; the running commands continue without this program and report their ends", attrs...)
	}
}

// stopCommands ends all commands within the stop grace. Those of a Runner that waits get what is left of the grace to
// end by themselves.
func (r *Runner) stopCommands(following context.Context) {
	ctx, cancel := context.WithTimeout(following, r.cfg.StopGrace-stopReserve/2)
	defer cancel()
	grace := max(0, min(r.cfg.Task.KillGrace, r.cfg.StopGrace-stopReserve))
	if r.cfg.Wait {
		r.awaitEnd(ctx, r.cfg.StopGrace-stopReserve-grace)
	}
	for r.running() > 0 && ctx.Err() == nil {
		for _, id := range r.liveLeases() {
			r.instruct(instruction{Lease: id, Stop: true, GraceMS: grace.Milliseconds()})
		}
		r.awaitEnd(ctx, instructAgain)
	}
	if jobs := r.liveJobs(); len(jobs) > 0 {
		r.cfg.Log.Warn("commands did not end in time; their leases expire, and the jobs lose an attempt",
			"running", len(jobs), "jobs", jobs[:min(len(jobs), maxNamed)])
	}
}

// awaitEnd waits until no command runs, at most for d.
func (r *Runner) awaitEnd(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for r.running() > 0 {
		select {
		case <-r.freed:
		case <-ctx.Done():
			return
		}
	}
}

// releaseUnanswered gives back the leases of requests whose answers the Runner did not receive before it stopped.
func (r *Runner) releaseUnanswered(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stopReserve/4)
	defer cancel()
	for lease, err := range r.client.AllLeases(ctx, r.worker) {
		if err != nil {
			r.cfg.Log.Warn("leases whose grants did not arrive are not given back; they will expire", "error", err)
			return
		}
		if r.lastLease(lease.JobID).ID != lease.ID {
			r.giveBack(ctx, lessor.Grant{Lease: lease, Job: lessor.Job{ID: lease.JobID}}, errStopping)
		}
	}
}
