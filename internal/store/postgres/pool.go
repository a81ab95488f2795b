package postgres

import (
	"context"
	"fmt"

	"lessor/internal/scheduler"
	"lessor/internal/store"
	"lessor/internal/store/postgres/wire"
)

// take lends a connection for a view, whose reads end with ctx, and reports whether it was used before. At most
// maxReaders are lent at a time.
func (s *Store) take(ctx context.Context) (c *wire.Conn, reused bool, err error) {
	if ctx.Err() != nil {
		return nil, false, fmt.Errorf("wait for a reader: %w", context.Cause(ctx))
	}
	select {
	case <-s.closed:
		return nil, false, store.ErrClosed
	default:
	}
	select {
	case c = <-s.readers:
	case <-s.closed:
		return nil, false, store.ErrClosed
	case <-ctx.Done():
		return nil, false, fmt.Errorf("wait for a reader: %w", context.Cause(ctx))
	}
	if c != nil && c.Epoch != s.origin.age.Load() {
		_ = c.Close() // it may lead to the database as it was before
		c = nil
	}
	if c != nil {
		c.Context, c.Wait = ctx, s.dialer.Wait
		return c, true, nil
	}
	if c, err = s.dialer.Dial(ctx, s.viewLimits()); err != nil {
		s.readers <- nil
		if ctx.Err() != nil {
			err = fmt.Errorf("connect: %w", context.Cause(ctx))
		}
		return nil, false, err
	}
	c.Context, c.Cancels, c.Epoch = ctx, true, s.origin.age.Load()
	return c, false, nil
}

// giveBack returns a connection whose transaction has ended. With an error it closes the connection.
func (s *Store) giveBack(c *wire.Conn, why error) {
	if why != nil {
		_ = c.Close() // the reason is known
		c = nil
	}
	s.readers <- c
}

// drain closes the readers' connections. It waits for those that are lent.
func (s *Store) drain() error {
	var first error
	for range cap(s.readers) {
		if c := <-s.readers; c != nil {
			if err := c.Close(); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}

var _ scheduler.Store = (*Store)(nil)
