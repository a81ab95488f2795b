package node

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// local is the caller of all calls from inside the program.
var local = scheduler.Caller{Actor: rules.ActorLocal}

// Submit stores a job of jobType. The payload is encoded as JSON and must give an object; nil means {}. A nil o takes
// all defaults.
func (n *Node) Submit(
	ctx context.Context, jobType string, payload any, o *lessor.SubmitOptions,
) (lessor.Submitted, error) {
	s, err := o.Submission(jobType, payload)
	if err != nil {
		return lessor.Submitted{}, err
	}
	return n.SubmitJob(ctx, s)
}

// SubmitJob is Submit with the body as the HTTP API defines it.
func (n *Node) SubmitJob(ctx context.Context, s lessor.Submission) (lessor.Submitted, error) {
	if err := n.scheduler.AwaitStart(ctx); err != nil {
		return lessor.Submitted{}, err
	}
	r, err := n.scheduler.Submit(ctx, local, s)
	return lessor.Submitted{Job: r.Job, Existing: r.Existing}, err
}

// SubmitBatch stores jobs, all or none.
func (n *Node) SubmitBatch(ctx context.Context, subs []lessor.Submission) ([]lessor.Job, error) {
	if err := n.scheduler.AwaitStart(ctx); err != nil {
		return nil, err
	}
	rs, err := n.scheduler.SubmitBatch(ctx, local, subs)
	jobs := make([]lessor.Job, len(rs))
	for i, r := range rs {
		jobs[i] = r.Job
	}
	return jobs, err
}

// Job returns one job.
func (n *Node) Job(ctx context.Context, id lessor.JobID) (lessor.Job, error) {
	return n.scheduler.Job(ctx, local, id)
}

// Wait returns a job when it has ended: completed, cancelled, or failed or expired with no attempt left.
func (n *Node) Wait(ctx context.Context, id lessor.JobID) (lessor.Job, error) {
	for {
		job, err := n.scheduler.AwaitJob(ctx, local, id, new(int64(30_000)))
		if err != nil || job.Final() {
			return job, err
		}
	}
}

// Cancel cancels a job. A waiting job ends at once, and so does a leased one if force is set; otherwise the worker of
// a leased job is asked to stop.
func (n *Node) Cancel(ctx context.Context, id lessor.JobID, force bool) (lessor.Job, error) {
	return n.scheduler.Cancel(ctx, local, id, force)
}

// Request requests leases and returns at least one grant, or a denial, or an error.
func (n *Node) Request(ctx context.Context, r lessor.LeaseRequest) ([]lessor.Grant, *lessor.Denial, error) {
	if err := n.scheduler.AwaitStart(ctx); err != nil {
		return nil, nil, err
	}
	return n.scheduler.Request(ctx, local, r)
}

// Heartbeat keeps a lease alive.
func (n *Node) Heartbeat(ctx context.Context, id lessor.LeaseID, b lessor.Heartbeat) (lessor.HeartbeatAnswer, error) {
	return n.scheduler.Heartbeat(ctx, local, id, b)
}

// Append appends to the journal of a leased job, and keeps the lease alive.
func (n *Node) Append(ctx context.Context, id lessor.LeaseID, a lessor.JournalAppend) (lessor.JournalAnswer, error) {
	return n.scheduler.Append(ctx, local, id, a)
}

// Journal returns one page of the journal of a job, oldest first, behind the entry whose number is after; "" begins
// with the first.
func (n *Node) Journal(
	ctx context.Context, id lessor.JobID, limit int, after string,
) (entries []lessor.JournalEntry, next string, err error) {
	return n.scheduler.Journal(ctx, local, id, limit, after)
}

// Complete ends an attempt: completed, failed or cancelled.
func (n *Node) Complete(ctx context.Context, id lessor.LeaseID, d lessor.Completion) error {
	return n.scheduler.Complete(ctx, local, id, d)
}

// LeaseAnswer is the answer to one lease of a batch. Beat is that of a heartbeat which was accepted.
type LeaseAnswer = scheduler.LeaseAnswer

// HeartbeatAll keeps many leases of one worker alive in one commit and returns one answer per lease, in the same order.
func (n *Node) HeartbeatAll(ctx context.Context, worker string, leaseIDs []string) ([]LeaseAnswer, error) {
	return n.scheduler.HeartbeatAll(ctx, local, worker, leaseIDs)
}

// CompleteAll ends many attempts of one worker in one commit and returns one answer per lease, in the same order.
func (n *Node) CompleteAll(ctx context.Context, worker string, ds []lessor.LeaseCompletion) ([]LeaseAnswer, error) {
	return n.scheduler.CompleteAll(ctx, local, worker, ds)
}

// Release gives a lease back; the attempt does not count.
func (n *Node) Release(ctx context.Context, id lessor.LeaseID, r lessor.Release) error {
	return n.scheduler.Release(ctx, local, id, r)
}

// Status returns the state of the whole scheduler.
func (n *Node) Status(ctx context.Context) (lessor.Status, error) {
	if err := n.scheduler.AwaitStart(ctx); err != nil {
		return lessor.Status{}, err
	}
	return n.scheduler.Status(ctx, local)
}
