package client

import (
	"context"
	"net/http"

	"lessor"
)

// Capacity returns how much may be leased now.
func (c *Client) Capacity(ctx context.Context) (lessor.Capacity, error) {
	return get[lessor.Capacity](ctx, c, scheduler+"/capacity", nil, maxObject)
}

// SetCapacity changes how much may be leased. The store keeps the change. Fields left out stay as they are.
func (c *Client) SetCapacity(ctx context.Context, ask lessor.CapacityAsk) (lessor.Capacity, error) {
	return send[lessor.Capacity](ctx, c, http.MethodPut, scheduler+"/capacity", ask)
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
