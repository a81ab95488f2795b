package executor

import (
	"context"
	"math/rand/v2"
	"time"

	"lessor"
	"lessor/internal/pause"
)

// minHeartbeatInterval bounds heartbeats that are sent early to report something: the server keeps no more.
const minHeartbeatInterval = time.Second

// keepLease sends heartbeats at the server's pace until ctx is done or the lease is over. It never gives up: the lease
// is not charged for time in which no server could be reached.
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
			if !pause.For(ctx, retryPause(failures)) {
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

// beat sends one heartbeat and returns when the next is due. If the lease lives on progress and there was none, it only
// reads the job, because a cancelled job or a lost lease must reach the command.
func (s *shim) beat(ctx context.Context, pace time.Duration) (time.Duration, error) {
	lease := s.order.Grant.Lease
	ctx, cancel := context.WithTimeout(ctx, patience(lease))
	defer cancel()
	b, due := s.takeHeartbeat()
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
	if s.messages.last > 0 {
		b.MessagesSeen = &s.messages.last
	}
	var answer lessor.HeartbeatAnswer
	err := s.printer.Beat(b, func(b lessor.Heartbeat) (err error) {
		answer, err = s.client.Heartbeat(ctx, lease.ID, b)
		return err
	})
	if isRefused(err) {
		s.log.Warn("the server refuses what the command reported", "error", err)
		answer, err = s.client.Heartbeat(ctx, lease.ID, lessor.Heartbeat{WorkerID: b.WorkerID})
	}
	if err != nil {
		s.keep(b)
		return pace, err
	}
	if answer.CancelRequested {
		s.stop(errCancelled)
	}
	s.receive(answer.Messages)
	return time.Duration(answer.HeartbeatAfterMS) * time.Millisecond, nil
}

// patience is how long a try may take: if the server hangs, a second try, on another server, must fit before the lease
// can end. A server that only is slow gets a second, because it drops calls whose callers have left.
func patience(lease lessor.Lease) time.Duration {
	return max(time.Duration(lease.TTLMS)*time.Millisecond/3, time.Second)
}

// heed sends a heartbeat as soon as the server reports that the lease was cancelled or taken away or has a message,
// until ctx is done. It needs no Runner, which may be gone. It ends early if the server refuses the call, as servers of
// an older release do: the next heartbeat says the same.
func (s *shim) heed(ctx context.Context) {
	lease := s.order.Grant.Lease
	for failures := 0; ctx.Err() == nil; {
		found, err := s.client.CancelledLease(ctx, lease.WorkerID, lease.ID, holdRequest)
		switch {
		case err == nil:
			if failures = 0; len(found.LeaseIDs)+len(found.EndedIDs)+len(found.MessagedIDs) > 0 {
				notify(s.ask)
			}
		case isFinal(err):
			return
		default:
			failures++
			pause.For(ctx, retryPause(failures))
		}
	}
}

// rest waits until the next heartbeat is due, or the command or the server has something new to report. It returns
// false if ctx is done first.
func (s *shim) rest(ctx context.Context, pace time.Duration) bool {
	due := time.NewTimer(pace)
	defer due.Stop()
	least := time.NewTimer(min(pace/4, minHeartbeatInterval))
	defer least.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.ask:
		return true
	case <-least.C:
	}
	select {
	case <-ctx.Done():
		return false
	case <-due.C:
	case <-s.ask:
	case <-s.wake:
	}
	return true
}

// isOver reports whether the server answered that this worker no longer holds the lease.
func isOver(err error) bool {
	code := lessor.CodeOf(err)
	return code == lessor.CodeLeaseNotFound || code == lessor.CodeWorkerMismatch || code == lessor.CodeJobNotFound
}

// isRefused reports whether the server answered that it will never accept what was sent.
func isRefused(err error) bool {
	code := lessor.CodeOf(err)
	return code == lessor.CodeInvalidRequest || code == lessor.CodeInvalidValue || code == lessor.CodePayloadTooLarge
}

// retryPause is the pause after a number of failures in a row, up to half of it random.
func retryPause(failures int) time.Duration {
	d := lessor.RetryPause(failures)
	return d/2 + rand.N(d/2+1)
}
