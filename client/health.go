package client

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Ready returns nil when a server answers that it serves.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.read(ctx, "/health/ready", nil, maxObject, nil)
	return err
}

// Clock returns the server's clock, to the second. It is for finding clocks that are wrong; no decision about a lease
// depends on it.
func (c *Client) Clock(ctx context.Context) (time.Time, error) {
	var at time.Time
	err := c.eachTry(ctx, true, func(base string) error {
		body, header, err := c.open(ctx, base, call{method: http.MethodGet, path: "/health/live"}, nil)
		if err != nil {
			return err
		}
		defer body.Close()
		if at, err = http.ParseTime(header.Get("Date")); err != nil {
			return fmt.Errorf("read the server's Date: %w", err)
		}
		return nil
	})
	return at, err
}
