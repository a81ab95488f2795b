package httpapi

import (
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
	ctx, release, err := c.poll(wait)
	if err != nil {
		return err
	}
	defer release()
	q := lessor.OutputQuery{
		Attempt: orZero(c.number("attempt")), Stream: c.query.Get("stream"), Offset: orZero(c.number("offset")),
	}
	out, err := c.api.scheduler.Output(ctx, c.caller, id, q, wait)
	if err != nil {
		return heldErr(ctx, err)
	}
	return c.answer(http.StatusOK, out)
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
