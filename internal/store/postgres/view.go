package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// view reads: one snapshot, or what a transaction sees.
type view struct {
	store *Store
	conn  *wire.Conn
	now   lessor.Instant
	// row is the serving row as it was read; serving is what it means here: a transaction (live) could accept a
	// heartbeat now.
	row, serving rules.Serving
	live         bool
	saved        *rules.Serving
	// unsent says that BEGIN is still to be sent.
	unsent bool
	// behind says that commits are on their way before this transaction.
	behind bool
	// ahead is a reading of the streams that the next call of Changes will want.
	ahead *following
	// err is the first fault. After it the server refuses everything until the end of the transaction.
	err     error
	scratch wire.Rows
}

var _ scheduler.View = (*view)(nil)

var (
	begin     = wire.SQL("begin")
	beginView = wire.SQL("begin transaction read only, isolation level repeatable read")
	commit    = wire.SQL("commit")
	rollback  = wire.SQL("rollback")
)

const (
	// viewIdle bounds the time between two reads of a view: an open snapshot keeps vacuum from its work.
	viewIdle = 30 * time.Second
	// viewTimeout bounds one read: reading a whole table for the fold takes half a second a million rows.
	viewTimeout = 2 * time.Minute
)

func (s *Store) viewLimits() wire.Limits {
	return wire.Limits{Idle: viewIdle, Lock: s.cfg.LockTimeout, Statement: viewTimeout}
}

// View implements scheduler.Store. It ends when ctx does.
func (s *Store) View(ctx context.Context, fn func(scheduler.View) error) error {
	v, err := s.beginView(ctx)
	if err != nil {
		return readFault(err)
	}
	done := false
	defer func() { // also when fn panics
		if !done {
			s.giveBack(v.conn, errors.New("given up"))
		}
	}()
	err = fn(v)
	done = true
	if v.err == nil {
		_ = v.flush("end view", wire.Step{Stmt: commit}) // an error costs the connection, not the reader
	}
	s.giveBack(v.conn, v.err)
	return readFault(err)
}

// readFault says of a table that is locked for too long, or that was changed, that it is out of reach: whoever only
// reads repeats nothing.
func readFault(err error) error {
	if errors.Is(err, scheduler.ErrAgain) {
		return fmt.Errorf("%w: %s", scheduler.ErrUnreachable, err.Error())
	}
	return err
}

// beginView takes a snapshot. It uses a new connection if the one at hand has died.
func (s *Store) beginView(ctx context.Context) (*view, error) {
	for {
		c, reused, err := s.take(ctx)
		if err != nil {
			return nil, err
		}
		v := &view{store: s, conn: c}
		c.Wait = viewTimeout + patience
		c.Begin(beginView, s.viewLimits())
		v.readClock()
		if err = c.Send(); err == nil {
			err = v.err
		}
		if err == nil {
			return v, nil
		}
		s.giveBack(c, err)
		if !reused || wire.Usable(err) || ctx.Err() != nil {
			return nil, err
		}
	}
}

// Now implements scheduler.View.
func (v *view) Now() lessor.Instant { return v.now }

// Serving implements scheduler.View.
func (v *view) Serving() rules.Serving { return v.serving }

// add puts a statement into the next round trip, unless the view is spoilt.
func (v *view) add(verb string, s wire.Step, params ...[]byte) {
	if v.err == nil {
		s.Verb = verb
		v.conn.Add(s, params...)
	}
}

// flush makes the round trip, with one more statement.
func (v *view) flush(verb string, s wire.Step, params ...[]byte) error {
	if v.err != nil {
		return v.err
	}
	v.add(verb, s, params...)
	return v.send(verb)
}

func (v *view) send(verb string) error {
	if err := v.await(); err != nil {
		return err
	}
	return v.trip(verb)
}

// trip is send that does not wait for the commit on its way.
func (v *view) trip(verb string) error {
	if v.err != nil {
		return v.err
	}
	v.ahead, v.unsent = nil, false // what was read ahead is of use only right after
	err := v.conn.Send()
	if refused, ok := errors.AsType[wire.RowError](err); ok {
		return fmt.Errorf("%s: %w", verb, refused.Err)
	}
	if err != nil {
		v.err = err
	}
	return v.err // also of what was read
}

// query reads with one statement.
func (v *view) query(verb string, s *wire.Statement, each func(*wire.Row) error, params ...[]byte) error {
	return v.flush(verb, wire.Step{Stmt: s, Each: each}, params...)
}
