package httpapi

import (
	"context"
	"net/http"

	"lessor"
)

func (c *call) keepOutput(r *lessor.OutputReport) error {
	id, err := c.leaseID()
	if err != nil {
		return err
	}
	answer, err := c.api.scheduler.Print(c.r.Context(), c.caller, id, *r)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, answer)
}

func (c *call) output() error {
	id, err := c.jobID()
	if err != nil {
		return err
	}
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
