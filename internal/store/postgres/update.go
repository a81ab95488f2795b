package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor/internal/scheduler"
)

// errOver is what a transaction answers when it is used after its end.
var errOver = errors.New("the transaction is over")

// Update implements scheduler.Store. ctx ends the waiting for a turn and for a connection; what has begun is not interrupted.
func (s *Store) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	return t.run(fn)
}

// enter waits for the turn. A context that is done gets none, even if one is free.
func (s *Store) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("wait for the writer: %w", context.Cause(ctx))
	}
	select {
	case <-s.turn:
	case <-s.closed:
		return errClosed
	case <-ctx.Done():
		return fmt.Errorf("wait for the writer: %w", context.Cause(ctx))
	}
	select {
	case <-s.closed: // both were ready
		s.leave()
		return errClosed
	default:
		return nil
	}
}

func (s *Store) leave() { s.turn <- struct{}{} }

// connect makes the connection that writes, if there is none, and the stream that its changes go to.
func (s *Store) connect(ctx context.Context) (err error) {
	if s.writer == nil {
		if s.writer, err = s.dialer.dial(ctx); err != nil {
			return err
		}
	}
	if s.stream.id.Load() == 0 {
		if err := s.newStream(); err != nil {
			s.drop()
			return err
		}
	}
	return nil
}

// drop gives the connection that writes up.
func (s *Store) drop() {
	if s.writer != nil {
		_ = s.writer.close() // the reason is known
		s.writer = nil
	}
}

// begin begins a transaction, on a new connection if the one at hand has died since it was last used.
func (s *Store) begin(ctx context.Context) (*tx, error) {
	for {
		reused := s.writer != nil
		if err := s.connect(ctx); err != nil {
			return nil, err
		}
		t := &tx{view: view{store: s, conn: s.writer, live: true, scratch: s.scratch}}
		t.conn.add(step{verb: "begin", stmt: begin})
		t.conn.add(step{verb: "begin", stmt: pin}, pinned(s.cfg.IdleTimeout, s.cfg.LockTimeout, s.cfg.StatementTimeout)...)
		if s.seqs.stale() {
			t.takeSeqs(1)
		}
		t.look()
		err := t.conn.send()
		if err == nil {
			return t, nil
		}
		s.drop()
		if !reused || lives(err) {
			return nil, err
		}
	}
}

// run is one transaction of who has the turn.
func (t *tx) run(fn func(scheduler.Tx) error) error {
	over := false
	defer func() { // also when fn panics
		t.store.scratch = t.scratch
		if !over {
			t.store.drop()
			t.undo()
		}
		t.err = errOver
	}()
	refused := fn(t)
	switch {
	case t.err != nil: // whatever fn made of it, the transaction is spoilt
		t.rollback(t.err)
		over = true
		return errors.Join(t.err, unless(refused, t.err))
	case refused != nil:
		t.rollback(nil)
		over = true
		return refused
	}
	err := t.commit()
	over = true
	if err != nil {
		t.undo()
		return err
	}
	t.settle()
	return nil
}

func unless(err, known error) error {
	if errors.Is(err, known) {
		return nil
	}
	return err
}

// rollback ends a transaction that failed with err, nil if nothing is wrong with the connection.
func (t *tx) rollback(err error) {
	t.undo()
	if err != nil && fatal(err) {
		t.store.drop()
		return
	}
	t.conn.forget()
	if err := t.conn.once(step{verb: "roll back", stmt: rollback}); err != nil {
		t.store.drop()
	}
}

// fatal reports whether a fault makes the connection useless. Faults that we made ourselves do not.
func fatal(err error) bool {
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return !lives(err)
	}
	return errors.Is(err, scheduler.ErrUnreachable)
}

// commit makes the last round trip: what was put off, the change row, COMMIT. It counts only if the server says COMMIT: the
// end of a transaction that failed is answered too, with ROLLBACK.
func (t *tx) commit() error {
	n := int64(0)
	if t.wrote {
		n = t.store.stream.n + 1
		t.putServing()
		t.putChange(n)
	}
	var tag pgconn.CommandTag
	t.conn.add(step{verb: "commit", stmt: commit, tag: &tag})
	if err := t.conn.err; err != nil { // nothing was sent
		t.rollback(err)
		return err
	}
	err := t.conn.send()
	switch {
	case tag.String() == "COMMIT":
		if err != nil {
			t.store.drop() // the server died after it had answered
		}
	case err == nil:
		err = fmt.Errorf("commit: %w: the server answered %q", scheduler.ErrUnreachable, tag.String())
		t.store.drop()
		return err
	case answered(err):
		t.rollback(err)
		return t.lostStream(err)
	default: // the connection was lost with the answer
		t.store.drop()
		if !t.wrote {
			return err
		}
		return t.store.resolve(n, err)
	}
	if t.wrote {
		t.store.stream.n = n
	}
	return nil
}

// answered reports whether the server itself refused a statement, so that nothing was committed.
func answered(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.SeverityUnlocalized == "ERROR"
	}
	return errors.Is(err, scheduler.ErrMoved) || errors.Is(err, scheduler.ErrAgain) // by a guard
}

// settle makes the caches those of a transaction that was committed.
func (t *tx) settle() {
	s := t.store
	if len(s.lanes)+len(t.lanes) > maxLanes {
		clear(s.lanes)
	}
	maps.Copy(s.lanes, t.lanes)
	for _, spec := range t.inserted {
		s.specs.put(spec)
	}
	for _, h := range t.granted {
		s.specs.drop(h.Turn.Job)
		s.granted[h.ID] = *h
	}
	for _, id := range t.ended {
		delete(s.granted, id)
	}
	for id := range s.granted {
		if len(s.granted) <= maxGranted {
			break
		}
		delete(s.granted, id)
	}
}

// undo forgets what a transaction that failed learned.
func (t *tx) undo() { t.lanes, t.inserted, t.granted, t.ended = nil, nil, nil, nil }
