package sqlite

import (
	"context"
	"errors"

	"zombiezen.com/go/sqlite"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// view reads one snapshot: that of a reader, or that of the writer's transaction.
type view struct {
	conn    *sqlite.Conn
	now     lessor.Instant
	serving rules.Serving
	leases  *leaseIndex
	seal    *rules.Seal
	left    func(seq int64) bool // whether a row of the queue is left over; nil = not read yet
}

var _ scheduler.View = (*view)(nil)

// View implements scheduler.Store. It ends when ctx does.
func (s *Store) View(ctx context.Context, fn func(scheduler.View) error) (err error) {
	conn, err := s.take(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fault("end view", s.giveBack(conn))) }()
	began := s.leases.index.enter()
	defer s.leases.index.leave(began)
	// The first read takes the snapshot. It comes before the reading of the clock, so that no row is from the future.
	if err := query(conn, "begin", nil, nil); err != nil {
		return readFault(ctx, "begin view", err)
	}
	nothing := func(*result) error { return nil }
	if err := query(conn, "select 1 from setting limit 1", nil, nothing); err != nil {
		return readFault(ctx, "begin view", err)
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	return fn(&view{
		conn: conn, now: s.clock.read().Wall, serving: s.clock.known(), leases: s.leases.index, seal: s.seal,
	})
}

// Now implements scheduler.View.
func (v *view) Now() lessor.Instant { return v.now }

// Serving implements scheduler.View.
func (v *view) Serving() rules.Serving { return v.serving }
