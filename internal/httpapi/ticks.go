package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"

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

func (c *call) trigger(b *triggerBody) error {
	id, err := c.definitionID()
	if err != nil {
		return err
	}
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
	id, err := c.definitionID()
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

func (c *call) nextTicks() error {
	id, err := c.definitionID()
	if err != nil {
		return err
	}
	count := defaultCount
	if s := c.query.Get("count"); s != "" {
		if count, err = strconv.Atoi(s); err != nil {
			return badValue("count", "must be 1 to 100")
		}
	}
	next, err := c.api.scheduler.NextTicks(c.r.Context(), c.caller, id, count)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, nextTicks{next})
}

func (c *call) ticks() error {
	id, err := c.definitionID()
	if err != nil {
		return err
	}
	f := lessor.TickFilter{Cursor: c.query.Get("cursor")}
	if f.Limit, err = c.limit(); err != nil {
		return err
	}
	if f.From, err = c.instantNamed("from"); err != nil {
		return err
	}
	if f.To, err = c.instantNamed("to"); err != nil {
		return err
	}
	ticks, next, err := c.api.scheduler.Ticks(c.r.Context(), c.caller, id, f)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, tickList{ticks, cursorOf(next)})
}
