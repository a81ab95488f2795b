package main

import (
	"context"
	"sync"
	"sync/atomic"
)

// concurrently has n callers do the items 0 to count-1, each taking the next when it is done with one. The first error
// ends all of them.
func concurrently(ctx context.Context, n, count int, do func(ctx context.Context, caller, item int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var callers sync.WaitGroup
	for caller := range n {
		callers.Go(func() {
			for ctx.Err() == nil {
				item := int(next.Add(1)) - 1
				if item >= count {
					return
				}
				if err := do(ctx, caller, item); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	callers.Wait()
	return context.Cause(ctx)
}
