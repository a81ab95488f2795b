package httpapi

import (
	"cmp"
	"encoding/json"
	"net/http"

	"lessor"
)

type triggerBody struct {
	Payload json.RawMessage `json:"payload,omitempty"`
}

type triggered struct {
	RunID lessor.JobID `json:"runId"`
}

type backfillBody struct {
	From *string `json:"from"`
	To   *string `json:"to"`
}

type backfilled struct {
	Created int `json:"created"`
}

type nextTicks struct {
	Next []lessor.Instant `json:"next"`
}

type tickList struct {
	Ticks      []lessor.Tick `json:"ticks"`
	NextCursor *string       `json:"nextCursor"`
}

func (c *call) trigger(id string, b *triggerBody) error {
	run, err := c.api.scheduler.Trigger(c.r.Context(), c.caller, id, b.Payload)
	if err != nil {
		return err
	}
	return c.answer(http.StatusCreated, triggered{run})
}

func (c *call) backfill(b *backfillBody) error {
	from, err := instant("from", *b.From)
	if err != nil {
		return err
	}
	to, err := instant("to", *b.To)
	if err != nil {
		return err
	}
	id, err := definitionID(c)
	if err != nil {
		return err
	}
	created, err := c.api.scheduler.Backfill(c.r.Context(), c.caller, id, from, to)
	if err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, backfilled{created})
}

// defaultCount is the default number of future ticks.
const defaultCount = 5

func (c *call) nextTicks(id string) error {
	count := cmp.Or(orZero(c.number("count")), defaultCount)
	next, err := c.api.scheduler.NextTicks(c.r.Context(), c.caller, id, int(count))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, nextTicks{next})
}

func (c *call) ticks(id string) error {
	f := lessor.TickFilter{
		From: c.instantNamed("from"), To: c.instantNamed("to"), Limit: c.limit(), Cursor: c.query.Get("cursor"),
	}
	ticks, next, err := c.api.scheduler.Ticks(c.r.Context(), c.caller, id, f)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, tickList{ticks, cursorOf(next)})
}
