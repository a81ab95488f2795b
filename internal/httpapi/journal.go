package httpapi

import (
	"net/http"

	"lessor"
)

type journalList struct {
	Journal    []lessor.JournalEntry `json:"journal"`
	NextCursor *string               `json:"next_cursor"`
}

func (c *call) appendJournal(id lessor.LeaseID, a *lessor.JournalAppend) error {
	return c.reply(c.api.scheduler.Append(c.r.Context(), c.caller, id, *a))
}

func (c *call) journal(id lessor.JobID) error {
	entries, next, err := c.api.scheduler.Journal(c.r.Context(), c.caller, id, c.limit(), c.query.Get("after"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, journalList{entries, cursorOf(next)})
}
