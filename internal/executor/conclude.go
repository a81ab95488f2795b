package executor

import (
	"context"

	"lessor"
	"lessor/internal/sentinel"
)

// conclude reports the end of a job from its exit record, if the shim was killed before it could report. Without an
// exit record the lease expires and the job is tried again.
func (r *Runner) conclude(ctx context.Context, lease lessor.Lease) {
	f, err := r.w.Folder(lease.JobID)
	if err != nil {
		return // the folder is gone: it says nothing
	}
	defer func() { _ = f.Close() }() // nothing is written through it
	lock, err := f.Lock()
	if err != nil || lock == nil {
		return // an attempt is running here
	}
	defer func() { _ = lock.Close() }() // it gives the lock back
	exit, err := f.Exit()
	if err != nil || exit.LeaseID != lease.ID || exit.Fence != lease.Fence {
		return // none, or not one of this attempt
	}
	log := r.cfg.Log.With("job_id", lease.JobID.String())
	if err := r.tell(ctx, exit); err != nil {
		log.Warn("an exit record could not be reported", "error", err)
		return
	}
	log.Info("reported from its exit record", "status", string(exit.Status))
	if err := f.RemoveSentinel(); err != nil {
		log.Warn("sentinel is not removed", "error", err)
	}
}

// tell reports an exit record until the server takes it or refuses it, or ctx is done.
func (r *Runner) tell(ctx context.Context, exit sentinel.Exit) error {
	for failures := 1; ; failures++ {
		err := r.client.Complete(ctx, exit.LeaseID, exit.Completion())
		if err == nil || isFinal(err) || !pause(ctx, retryPause(failures)) {
			return err
		}
	}
}
