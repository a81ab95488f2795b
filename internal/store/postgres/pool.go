package postgres

import (
	"context"
	"fmt"

	"lessor/internal/scheduler"
)

// take lends a connection for a view, whose reads end with ctx, and says whether it was used before. No more than Config.Readers are out at a time.
func (s *Store) take(ctx context.Context) (c *conn, reused bool, err error) {
	if ctx.Err() != nil {
		return nil, false, fmt.Errorf("wait for a reader: %w", context.Cause(ctx))
	}
	select {
	case <-s.closed:
		return nil, false, errClosed
	default:
	}
	select {
	case c = <-s.readers:
	case <-s.closed:
		return nil, false, errClosed
	case <-ctx.Done():
		return nil, false, fmt.Errorf("wait for a reader: %w", context.Cause(ctx))
	}
	if c != nil && c.age != s.origin.age.Load() {
		_ = c.close() // it may lead to what was the database before
		c = nil
	}
	if c != nil {
		c.ctx, c.wait = ctx, s.dialer.wait
		return c, true, nil
	}
	if c, err = s.dialer.dial(ctx, s.viewLimits()); err != nil {
		s.readers <- nil
		if ctx.Err() != nil {
			err = fmt.Errorf("connect: %w", context.Cause(ctx))
		}
		return nil, false, err
	}
	c.ctx, c.cancels, c.age = ctx, true, s.origin.age.Load()
	return c, false, nil
}

// giveBack returns a connection whose transaction has ended, or, with why not, closes it.
func (s *Store) giveBack(c *conn, why error) {
	if why != nil {
		_ = c.close() // the reason is known
		c = nil
	}
	s.readers <- c
}

// drain closes the readers' connections, waiting for those that are out.
func (s *Store) drain() error {
	var first error
	for range cap(s.readers) {
		if c := <-s.readers; c != nil {
			if err := c.close(); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}

var _ scheduler.Store = (*Store)(nil)
