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
	capacity, err := c.api.scheduler.Capacity(c.r.Context())
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, capacity)
}

func (c *call) checkCapacity(ask *lessor.CapacityAsk) error {
	return c.api.scheduler.CheckCapacity(*ask)
}

func (c *call) setCapacity(ask *lessor.CapacityAsk) error {
	capacity, err := c.api.scheduler.SetCapacity(c.r.Context(), c.caller, *ask)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, capacity)
}

func (c *call) status() error {
	status, err := c.api.scheduler.Status(c.r.Context(), c.caller)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, status)
}

func (c *call) drain(b *drainBody) error {
	status, err := c.api.scheduler.SetDraining(c.r.Context(), c.caller, *b.Draining)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, status)
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
