package httpapi

import (
	"context"

	"lessor"
)

func (c *call) keepOutput(id lessor.LeaseID, r *lessor.OutputReport) error {
	return c.reply(c.api.scheduler.Print(c.r.Context(), c.caller, id, *r))
}

func (c *call) output(id lessor.JobID) error {
	wait := c.number("wait_ms")
	q := lessor.OutputQuery{
		Attempt: orZero(c.number("attempt")), Fence: orZero(c.number("fence")), Stream: c.query.Get("stream"),
		Offset: orZero(c.number("offset")),
	}
	return polled(c, wait, func(ctx context.Context) (lessor.Output, error) {
		return c.api.scheduler.Output(ctx, c.caller, id, q, wait)
	})
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
