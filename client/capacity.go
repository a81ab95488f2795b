package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"lessor"
)

// CapacityChange says what to change. A nil field stays as it is; Reset returns a field to the configuration.
type CapacityChange struct {
	TotalUnits *int64
	Busy       *int64
	// ExpiresIn ends the change by itself, in whole seconds. Zero means that it stays.
	ExpiresIn       time.Duration
	ResetTotalUnits bool
	ResetBusy       bool
}

// MarshalJSON writes the body of PUT /capacity, where absent and null differ.
func (c CapacityChange) MarshalJSON() ([]byte, error) {
	body := map[string]*int64{}
	if c.TotalUnits != nil || c.ResetTotalUnits {
		body["total_units"] = c.TotalUnits
	}
	if c.Busy != nil || c.ResetBusy {
		body["busy"] = c.Busy
	}
	if c.ExpiresIn > 0 {
		body["expires_in_s"] = new(int64((c.ExpiresIn + time.Second - 1) / time.Second))
	}
	return json.Marshal(body)
}

// Capacity returns what may be leased now.
func (c *Client) Capacity(ctx context.Context) (lessor.Capacity, error) {
	var capacity lessor.Capacity
	_, err := c.read(ctx, scheduler+"/capacity", nil, maxObject, &capacity)
	return capacity, err
}

// SetCapacity changes what may be leased; the change is kept in the store.
func (c *Client) SetCapacity(ctx context.Context, ch CapacityChange) (lessor.Capacity, error) {
	var capacity lessor.Capacity
	_, err := c.do(ctx, call{method: http.MethodPut, path: scheduler + "/capacity", body: ch}, &capacity)
	return capacity, err
}

// Status returns the state of the whole scheduler.
func (c *Client) Status(ctx context.Context) (lessor.Status, error) {
	var status lessor.Status
	_, err := c.read(ctx, scheduler+"/status", nil, maxObject, &status)
	return status, err
}

// SetDraining stops new grants, or lets them go on. Leases that are held stay.
func (c *Client) SetDraining(ctx context.Context, draining bool) (lessor.Status, error) {
	body := struct {
		Draining bool `json:"draining"`
	}{draining}
	var status lessor.Status
	_, err := c.do(ctx, call{method: http.MethodPut, path: scheduler + "/drain", body: body}, &status)
	return status, err
}

// Workers returns who asked for work or beat in the last five minutes.
func (c *Client) Workers(ctx context.Context) ([]lessor.Worker, error) {
	var workers []lessor.Worker
	for w, err := range eachPage("", func(cursor string) ([]lessor.Worker, string, error) {
		var answer struct {
			Workers    []lessor.Worker `json:"workers"`
			NextCursor *string         `json:"next_cursor"`
		}
		_, err := c.read(ctx, scheduler+"/workers", page(0, cursor), maxObject, &answer)
		return answer.Workers, deref(answer.NextCursor), err
	}) {
		if err != nil {
			return nil, err
		}
		workers = append(workers, w)
	}
	return workers, nil
}
