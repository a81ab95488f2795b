package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"lessor"
)

// over reports whether the server says that the lease is not ours any more.
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

// retryAfter is how long the server asked us to wait, within reason.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*lessor.Error](err); ok {
		return min(e.RetryAfter, maxRetryAfter)
	}
	return 0
}

// maxRetryAfter bounds what a server can make us wait: a worker that sleeps longer is taken for dead by those who watch it.
const maxRetryAfter = 30 * time.Second

// pause waits for d, or a little longer so that not all come back at once, and reports whether ctx let it.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d + rand.N(d/5+1))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
