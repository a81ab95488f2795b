package executor

import (
	"context"
	"math/rand/v2"
	"time"

	"lessor"
)

// tellEvery is the least time between heartbeats that only bring news: the server keeps no more.
const tellEvery = time.Second

// keepLease sends heartbeats at the pace that the server sets, until ctx is done or the lease is over. It tries for as
// long as it takes: a time in which no server could be reached is not charged to the lease.
func (s *shim) keepLease(ctx context.Context) {
	pace := time.Duration(s.order.Grant.Lease.HeartbeatAfterMS) * time.Millisecond
	failures := 0
	for {
		next, err := s.beat(ctx, pace)
		switch {
		case ctx.Err() != nil:
			return
		case isOver(err):
			s.stop(errLeaseOver)
			return
		case err != nil:
			if failures++; failures == 1 {
				s.log.Warn("heartbeat failed, trying again", "error", err)
			}
			if !pause(ctx, retryPause(failures)) {
				return
			}
			continue
		case failures > 0:
			s.log.Info("heartbeats arrive again", "failed", failures)
		}
		failures, pace = 0, next
		if !s.rest(ctx, pace) {
			return
		}
	}
}

// beat makes one heartbeat and returns when the next is due. Without progress, where that counts, it only asks how the
// job is: a cancelled job or a lost lease must reach the command.
func (s *shim) beat(ctx context.Context, pace time.Duration) (time.Duration, error) {
	lease := s.order.Grant.Lease
	b, due := s.tell()
	if !due {
		job, err := s.client.Job(ctx, lease.JobID)
		switch {
		case err != nil:
			return pace, err
		case job.LeaseID == nil || *job.LeaseID != lease.ID:
			return pace, lessor.ErrLeaseNotFound
		case job.CancelRequested:
			s.stop(errCancelled)
		}
		return pace, nil
	}
	answer, err := s.client.Heartbeat(ctx, lease.ID, b)
	if isRefused(err) {
		s.log.Warn("the server refuses what the command said of itself", "error", err)
		answer, err = s.client.Heartbeat(ctx, lease.ID, lessor.Heartbeat{WorkerID: b.WorkerID})
	}
	if err != nil {
		s.keep(b)
		return pace, err
	}
	if answer.CancelRequested {
		s.stop(errCancelled)
	}
	return time.Duration(answer.HeartbeatAfterMS) * time.Millisecond, nil
}

// rest waits until the next heartbeat is due, or there is news, and reports whether ctx let it.
func (s *shim) rest(ctx context.Context, pace time.Duration) bool {
	due := time.NewTimer(pace)
	defer due.Stop()
	least := time.NewTimer(min(pace/4, tellEvery))
	defer least.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-least.C:
	}
	select {
	case <-ctx.Done():
		return false
	case <-due.C:
	case <-s.wake:
	}
	return true
}

// isOver reports whether the server said that the lease is not ours any more.
func isOver(err error) bool {
	code := lessor.CodeOf(err)
	return code == lessor.CodeLeaseNotFound || code == lessor.CodeWorkerMismatch || code == lessor.CodeJobNotFound
}

// isRefused reports whether the server said that what was sent can never be accepted.
func isRefused(err error) bool {
	code := lessor.CodeOf(err)
	return code == lessor.CodeInvalidRequest || code == lessor.CodeInvalidValue || code == lessor.CodePayloadTooLarge
}

// retryPause is the pause after a number of failures in a row, up to half of it random.
func retryPause(failures int) time.Duration {
	d := lessor.RetryPause(failures)
	return d/2 + rand.N(d/2+1)
}

// pause waits and reports whether ctx let it.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
