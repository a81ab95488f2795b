package httpapi

import (
	"net/http"
	"strconv"

	"lessor"
)

type drainBody struct {
	Draining *bool `json:"draining"`
}

type workerList struct {
	Workers    []lessor.Worker `json:"workers"`
	NextCursor *string         `json:"next_cursor"`
}

func (c *call) capacity() error {
	return c.reply(c.api.scheduler.Capacity(c.r.Context()))
}

func (c *call) checkCapacity(ask *lessor.CapacityAsk) error {
	return c.api.scheduler.CheckCapacity(*ask)
}

func (c *call) setCapacity(ask *lessor.CapacityAsk) error {
	return c.reply(c.api.scheduler.SetCapacity(c.r.Context(), c.caller, *ask))
}

func (c *call) status() error {
	return c.reply(c.api.scheduler.Status(c.r.Context(), c.caller))
}

func (c *call) drain(b *drainBody) error {
	return c.reply(c.api.scheduler.SetDraining(c.r.Context(), c.caller, *b.Draining))
}

func (c *call) workers() error {
	all, err := c.api.scheduler.Workers(c.r.Context(), c.caller)
	if err != nil {
		return err
	}
	page, next, err := pageOf(all, func(w lessor.Worker) string {
		return newestFirst(w.LastSeenAt) + w.WorkerID
	}, c.limit(), c.query.Get("cursor"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, workerList{page, next})
}

// newestFirst returns a key by which later instants sort first. The complement reverses the order and has 16 digits for
// all instants since 1970.
func newestFirst(i lessor.Instant) string { return strconv.FormatUint(^uint64(i), 16) }
