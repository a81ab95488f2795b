package httpapi

import (
	"net/http"

	"lessor"
)

type journalList struct {
	Journal    []lessor.JournalEntry `json:"journal"`
	NextCursor *string               `json:"next_cursor"`
}

func (c *call) appendJournal(a *lessor.JournalAppend) error {
	id, err := c.leaseID()
	if err != nil {
		return err
	}
	answer, err := c.api.scheduler.Append(c.r.Context(), c.caller, id, *a)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, answer)
}

func (c *call) journal() error {
	id, err := c.jobID()
	if err != nil {
		return err
	}
	entries, next, err := c.api.scheduler.Journal(c.r.Context(), c.caller, id, c.limit(), c.query.Get("after"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, journalList{entries, cursorOf(next)})
}
