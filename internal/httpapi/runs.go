package httpapi

import (
	"net/http"

	"lessor"
)

type runList struct {
	Runs       []lessor.Run `json:"runs"`
	NextCursor *string      `json:"nextCursor"`
}

type circuitList struct {
	Circuits   []lessor.Circuit `json:"circuits"`
	NextCursor *string          `json:"nextCursor"`
}

type lockList struct {
	Locks      []lessor.Lock `json:"locks"`
	NextCursor *string       `json:"nextCursor"`
}

func (c *call) runs() error {
	tenant, err := c.tenantNamed("tenantId")
	if err != nil {
		return err
	}
	runs, next, err := c.api.scheduler.Runs(c.r.Context(), c.caller, lessor.RunFilter{
		JobID: c.query.Get("jobId"), Tenant: tenant, Status: lessor.RunStatus(c.query.Get("status")),
		Trace: c.query.Get("traceId"),
		Limit: c.limit(), Cursor: c.query.Get("cursor"),
	})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, runList{runs, cursorOf(next)})
}

func (c *call) runAudit(id lessor.JobID) error {
	return c.reply(c.api.scheduler.RunAudit(c.r.Context(), c.caller, id))
}

func (c *call) runError() error {
	return c.reply(c.api.scheduler.RunError(c.r.Context(), c.caller, c.r.PathValue("ref")))
}

func (c *call) circuits() error {
	circuits, next, err := c.api.scheduler.Circuits(c.r.Context(), c.caller, c.limit(), c.query.Get("cursor"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, circuitList{circuits, cursorOf(next)})
}

func (c *call) locks() error {
	tenant, err := c.tenantNamed("tenantId")
	if err != nil {
		return err
	}
	locks, next, err := c.api.scheduler.Locks(c.r.Context(), c.caller, tenant, c.limit(), c.query.Get("cursor"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, lockList{locks, cursorOf(next)})
}
