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
	alerts, next, err := c.api.scheduler.Alerts(c.r.Context(), c.caller, lessor.AlertFilter{
		Open: c.query.Get("open") == "true", Limit: c.limit(), Cursor: c.query.Get("cursor"),
	})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, alertList{alerts, cursorOf(next)})
}

func (c *call) acknowledge(id lessor.AlertID, _ *empty) error {
	return c.reply(c.api.scheduler.Acknowledge(c.r.Context(), c.caller, id))
}

func (c *call) audit() error {
	entries, next, err := c.api.scheduler.Audit(c.r.Context(), lessor.AuditFilter{
		Actor: c.query.Get("actor"), Object: c.query.Get("object"), Limit: c.limit(), Cursor: c.query.Get("cursor"),
	})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, auditList{entries, cursorOf(next)})
}
