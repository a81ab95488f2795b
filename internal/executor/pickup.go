package executor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"lessor"
	"lessor/internal/pause"
	"lessor/internal/printer"
	"lessor/internal/sentinel"
)

// liveEvery is how often the Runner checks for shims of an earlier Runner. It has no connection to them and only sees
// the locks of their folders.
const liveEvery = 250 * time.Millisecond

// pickUp counts the commands that an earlier Runner of this name left running, and starts those that it was granted but
// did not come to start. It returns when the server was asked, or ctx is done.
func (r *Runner) pickUp(ctx, following context.Context) error {
	if err := r.countLive(following); err != nil {
		return fmt.Errorf("look for commands of an earlier run: %w", err)
	}
	for failures := 1; ctx.Err() == nil; failures++ {
		err := r.startGranted(ctx, following)
		switch {
		case err == nil:
			return nil
		case isFinal(err):
			return fmt.Errorf("look for leases of an earlier run: %w", err)
		case failures == 1:
			r.cfg.Log.Warn("no server answers, trying again", "error", err)
		}
		pause.For(ctx, retryPause(failures))
	}
	return nil
}

// countLive counts every folder of this Runner that an attempt holds, also one whose lease is over by now.
func (r *Runner) countLive(following context.Context) error {
	jobs, err := r.w.Jobs()
	if err != nil {
		return err
	}
	for _, id := range jobs {
		if lease := r.lastLease(id); lease.WorkerID == r.worker && r.isHeld(id) {
			r.adopt(following, lease)
		}
	}
	return nil
}

// startGranted starts the granted jobs that have no folder for their lease. An unlocked folder for the lease is that
// of a killed shim.
func (r *Runner) startGranted(ctx, following context.Context) error {
	for lease, err := range r.client.AllLeases(ctx, r.worker) {
		if err != nil {
			return err
		}
		switch {
		case slices.Contains(r.liveLeases(), lease.ID): // an adopted shim may have an older lease of the job
			continue
		case r.lastLease(lease.JobID).ID == lease.ID:
			r.beside(lease, func() { r.conclude(following, lease) })
			continue
		}
		job, err := r.client.Job(ctx, lease.JobID)
		if err != nil {
			return err
		}
		if job.LeaseID != nil && *job.LeaseID == lease.ID {
			r.take(ctx, following, lessor.Grant{Lease: lease, Job: job})
		}
	}
	return nil
}

// isHeld reports whether an attempt runs in the folder of a job.
func (r *Runner) isHeld(id lessor.JobID) bool {
	f, err := r.w.Folder(id)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	held, err := f.Locked()
	return held || err != nil
}

// lastLease returns the lease that a job's folder was last used under. A folder that cannot be read has none:
// starting a job in it will say why.
func (r *Runner) lastLease(id lessor.JobID) lessor.Lease {
	f, err := r.w.Folder(id)
	if err != nil {
		return lessor.Lease{}
	}
	defer func() { _ = f.Close() }() // it was only read
	o, err := readOrder(f)
	if err != nil {
		return lessor.Lease{}
	}
	return o.Grant.Lease
}

// adopt counts a running command until its folder's lock is free.
func (r *Runner) adopt(following context.Context, lease lessor.Lease) {
	r.cfg.Log.Info("still running from before", "job_id", lease.JobID.String())
	r.beside(lease, func() { r.followHeld(following, lease) })
}

// followHeld follows a shim to which there is no connection, until its folder is free or following is done. It may have
// been killed before it reported the end.
func (r *Runner) followHeld(following context.Context, lease lessor.Lease) {
	r.awaitFree(following, lease.JobID)
	r.conclude(following, lease)
}

// awaitFree returns when the folder of a job is free, or following is done. It logs how the command ended.
func (r *Runner) awaitFree(following context.Context, id lessor.JobID) {
	for r.isHeld(id) && pause.For(following, liveEvery) {
	}
	if following.Err() == nil {
		logEnd(r.cfg.Log.With("job_id", id.String()), r.lastEnd(id))
	}
}

// lastEnd returns the summary of the exit record in a job's folder, "" if the last attempt has left none.
func (r *Runner) lastEnd(id lessor.JobID) string {
	f, err := r.w.Folder(id)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it was only read
	e, err := f.Exit()
	if err != nil || e.LeaseID != r.lastLease(id).ID {
		return ""
	}
	return summary(e)
}

// conclude sends the rest of the output and reports the end of a job from its exit record, if the lease lives on
// because the shim could not report it. Without an exit record the lease expires and the job is tried again. The server
// takes output until then.
func (r *Runner) conclude(ctx context.Context, lease lessor.Lease) {
	f, err := r.w.Folder(lease.JobID)
	if err != nil {
		return // the folder is gone
	}
	defer func() { _ = f.Close() }() // nothing is written through it
	lock, err := f.Lock()
	if err != nil || lock == nil {
		return // an attempt is running here
	}
	defer func() { _ = lock.Close() }() // closing it releases the lock
	log := r.cfg.Log.With("job_id", lease.JobID.String())
	exit, err := f.Exit()
	ended := err == nil && exit.LeaseID == lease.ID && exit.Fence == lease.Fence
	check := func(ctx context.Context) error { return r.checkLive(ctx, lease) }
	if ended { // only then may the lease be kept
		check = func(ctx context.Context) error { return keepAlive(ctx, r.client, lease) }
	}
	err = r.insist(ctx, func() error { return check(ctx) })
	if err == nil {
		err = r.sendLeft(ctx, f, lease, check)
	}
	switch {
	case isOver(err):
		return
	case err != nil:
		log.Warn("the end of the output could not be sent", "error", err)
	}
	if !ended {
		return
	}
	report := func() error { return r.client.Complete(ctx, exit.LeaseID, exit.Completion()) }
	if err := r.insist(ctx, report); err != nil {
		log.Warn("an exit record could not be reported", "error", err)
		return
	}
	log.Info("reported from its exit record", "status", string(exit.Status))
	if err := f.RemoveSentinel(); err != nil {
		log.Warn("sentinel is not removed", "error", err)
	}
}

// insist makes a call until the server takes it or refuses it, or ctx is done.
func (r *Runner) insist(ctx context.Context, call func() error) error {
	for failures := 1; ; failures++ {
		err := call()
		if err == nil || isFinal(err) || !pause.For(ctx, retryPause(failures)) {
			return err
		}
	}
}

// sendLeft sends what a killed shim has left in the files of its output. A file that has lost its beginning does not
// say where it belongs, and is left. It calls check meanwhile, as rest does.
func (r *Runner) sendLeft(
	ctx context.Context, f *sentinel.Folder, lease lessor.Lease, check func(context.Context) error,
) error {
	p := printer.New(r.client, lease.ID, lease.WorkerID)
	for stream, name := range map[string]string{lessor.Stdout: stdoutName, lessor.Stderr: stderrName} {
		data, err := f.ReadFile(name, r.cfg.Task.MaxOutput)
		switch {
		case errors.Is(err, fs.ErrNotExist), bytes.HasPrefix(data, []byte(cutMark)):
		case err != nil:
			return err
		default:
			p.Add(stream, leftOutput(data))
		}
	}
	return rest{printer: p, check: check, interval: restInterval(lease), limit: restTime}.send(ctx)
}

// checkLive returns nil if a server answers that a lease lives.
func (r *Runner) checkLive(ctx context.Context, lease lessor.Lease) error {
	job, err := r.client.Job(ctx, lease.JobID)
	if err == nil && (job.LeaseID == nil || *job.LeaseID != lease.ID) {
		return lessor.ErrLeaseNotFound
	}
	return err
}

// leftOutput is a whole stream.
type leftOutput []byte

// Size implements printer.Stream.
func (o leftOutput) Size() int64 { return int64(len(o)) }

// Read implements printer.Stream.
func (o leftOutput) Read(offset int64, p []byte) (int64, int) { return offset, copy(p, o[offset:]) }

// Sent implements printer.Stream.
func (leftOutput) Sent(int64) {}
