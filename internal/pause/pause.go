// Package pause waits between two attempts. The server and the worker side share it.
package pause

import (
	"context"
	"time"
)

// For waits for d by the monotonic clock, and reports whether ctx is still alive: false comes as soon as ctx is done.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
