package scheduler

import (
	"context"
	"errors"
	"time"

	"lessor"
)

// silentFor is how long the loop may note no service before it counts as hanging: it notes that it serves every
// 250 ms, and a slow disk or a rebuild of the fold takes seconds at most.
const silentFor = 5 * time.Second

// ErrStarting is the answer to whatever depends on settings that were not read yet.
var ErrStarting = &lessor.Error{
	Code: lessor.CodeUnavailable, Detail: "the server is starting: its jobs and settings are being read",
	RetryAfter: time.Second,
}

// Ready returns nil when calls can be answered, else a refusal that names the cause and tells nothing else of the
// store.
func (s *Scheduler) Ready() error {
	s.mu.Lock()
	err, at := s.status, s.statusAt
	s.mu.Unlock()
	var cause string
	switch {
	case err == nil && s.now().Sub(at) <= silentFor:
		return nil
	case err == nil:
		cause = "the store does not answer"
	case errors.Is(err, ErrStarting): // or stopping: a refusal of ours
		return err
	case errors.Is(err, context.Canceled):
		return errStopping
	case errors.Is(err, ErrFull):
		cause = "the disk of the store is full"
	case errors.Is(err, ErrUnreachable):
		cause = "the store is out of reach"
	case errors.Is(err, ErrUnknownOutcome):
		cause = "the answer to a commit was lost, and is being looked for"
	case errors.Is(err, ErrBroken):
		cause = "the store reported an I/O error; the server stops"
	default:
		cause = "the store failed; the server's log says why"
	}
	return &lessor.Error{Code: lessor.CodeUnavailable, Detail: cause, RetryAfter: time.Second}
}

// AwaitStart returns when Run has read the settings or failed to, or with an error when ctx is done.
func (s *Scheduler) AwaitStart(ctx context.Context) error {
	select { // on one channel, which takes no lock once it is closed
	case <-s.started:
		return nil
	default:
	}
	select {
	case <-s.started:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Scheduler) setStatus(at time.Time, err error) {
	s.startOnce.Do(func() { close(s.started) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.statusAt = err, at
}
