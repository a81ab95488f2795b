package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"lessor"
)

// CapacityChange is a change of the capacity. A nil field stays as it is; Reset… restores the configured value.
type CapacityChange struct {
	TotalUnits *int64
	Busy       *int64
	// ExpiresIn is how long the change lasts, in whole seconds. Zero means that it stays.
	ExpiresIn       time.Duration
	ResetTotalUnits bool
	ResetBusy       bool
}

// MarshalJSON encodes the body of PUT /capacity, where an absent field and null differ.
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

// Capacity returns how much may be leased now.
func (c *Client) Capacity(ctx context.Context) (lessor.Capacity, error) {
	return get[lessor.Capacity](ctx, c, scheduler+"/capacity", nil, maxObject)
}

// SetCapacity changes how much may be leased. The store keeps the change.
func (c *Client) SetCapacity(ctx context.Context, ch CapacityChange) (lessor.Capacity, error) {
	return send[lessor.Capacity](ctx, c, http.MethodPut, scheduler+"/capacity", ch)
}

// Status returns the state of the whole scheduler.
func (c *Client) Status(ctx context.Context) (lessor.Status, error) {
	return get[lessor.Status](ctx, c, scheduler+"/status", nil, maxObject)
}

// SetDraining stops new grants, or allows them again. Existing leases stay.
func (c *Client) SetDraining(ctx context.Context, draining bool) (lessor.Status, error) {
	return send[lessor.Status](ctx, c, http.MethodPut, scheduler+"/drain", map[string]bool{"draining": draining})
}

// Workers returns the workers that requested work or sent a heartbeat in the last five minutes.
func (c *Client) Workers(ctx context.Context) ([]lessor.Worker, error) {
	return collect[lessor.Worker](ctx, c, scheduler+"/workers", "workers")
}
