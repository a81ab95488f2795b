package httpapi

import (
	"net/http"

	"lessor"
)

type alertList struct {
	Alerts     []lessor.Alert `json:"alerts"`
	NextCursor *string        `json:"nextCursor"`
}

type auditList struct {
	Audit      []lessor.Audited `json:"audit"`
	NextCursor *string          `json:"nextCursor"`
}

func (c *call) alerts() error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	open := c.query.Get("open")
	if open != "" && open != "true" && open != "false" {
		return badValue("open", "must be true or false")
	}
	alerts, next, err := c.api.scheduler.Alerts(c.r.Context(), c.caller, lessor.AlertFilter{
		Open: open == "true", Limit: limit, Cursor: c.query.Get("cursor"),
	})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, alertList{alerts, cursorOf(next)})
}

func (c *call) acknowledge(*empty) error {
	u, err := lessor.ParseUUID(c.r.PathValue("alertId"))
	if err != nil {
		return lessor.ErrAlertNotFound
	}
	a, err := c.api.scheduler.Acknowledge(c.r.Context(), c.caller, lessor.AlertID{UUID: u})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, a)
}

func (c *call) audit() error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	entries, next, err := c.api.scheduler.Audit(c.r.Context(), lessor.AuditFilter{
		Actor: c.query.Get("actor"), Object: c.query.Get("object"), Limit: limit, Cursor: c.query.Get("cursor"),
	})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, auditList{entries, cursorOf(next)})
}
