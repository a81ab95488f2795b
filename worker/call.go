package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"lessor"
	"lessor/internal/pause"
)

// over reports whether the server says that the lease no longer belongs to this worker.
func over(err error) bool {
	return errors.Is(err, lessor.ErrLeaseNotFound) || errors.Is(err, lessor.ErrWorkerMismatch)
}

// transient reports whether the same call may succeed later.
func transient(err error) bool {
	switch lessor.CodeOf(err) {
	case "", lessor.CodeUnavailable, lessor.CodeRateLimited, lessor.CodeInternal:
		return true
	}
	return false
}

// retryAfter returns how long the server asked the worker to wait, at most maxRetryAfter.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*lessor.Error](err); ok {
		return min(e.RetryAfter, maxRetryAfter)
	}
	return 0
}

// maxRetryAfter bounds the wait that a server can ask for: monitoring considers a worker dead that is silent for
// longer.
const maxRetryAfter = 30 * time.Second

// insist makes a call until it succeeds, is refused, or ctx is done.
func insist(ctx context.Context, verb string, call func() error) error {
	if err := repeat(ctx, call); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return nil
}

// repeat is insist without a verb. The errors of call must be those of the client, which say whether they are refusals.
func repeat(ctx context.Context, call func() error) error {
	for failures := 1; ; failures++ {
		err := call()
		switch {
		case err == nil || !transient(err):
			return err
		case !pauseAbout(ctx, max(lessor.RetryPause(failures), retryAfter(err))):
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// pauseAbout waits for d plus a random share of it, and reports whether ctx is still alive.
func pauseAbout(ctx context.Context, d time.Duration) bool {
	return pause.For(ctx, d+rand.N(d/5+1))
}
