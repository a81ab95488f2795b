package httpapi

import (
	"encoding/json"
	"net/http"

	"lessor"
)

type handlerBody struct {
	Schema json.RawMessage `json:"schema"`
}

type handlerList struct {
	Handlers   []lessor.Handler `json:"handlers"`
	NextCursor *string          `json:"nextCursor"`
}

func (c *call) setHandler(b *handlerBody) error {
	h, created, err := c.api.scheduler.SetHandler(c.r.Context(), c.caller, c.r.PathValue("handlerId"), b.Schema)
	if err != nil {
		return err
	}
	return c.answer(stored(created), h)
}

func (c *call) handlers() error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	page, next, err := c.api.scheduler.Handlers(limit, c.query.Get("cursor"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, handlerList{page, cursorOf(next)})
}
