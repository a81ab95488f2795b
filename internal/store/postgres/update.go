package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor"
	"lessor/internal/rules"
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
	f, err := s.transact(ctx, false, fn)
	if err != nil {
		return err
	}
	f.read()
	return s.land()
}

// Send implements scheduler.Sender. The connection of a commit on its way is read by a goroutine that ends with its answer.
func (s *Store) Send(ctx context.Context, fn func(scheduler.Tx) error) (wait func() error, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	f, err := s.transact(ctx, true, fn)
	if err != nil {
		return nil, err
	}
	go f.read()
	return f.wait, nil
}

// transact runs fn and sends its commit.
func (s *Store) transact(ctx context.Context, send bool, fn func(scheduler.Tx) error) (*flight, error) {
	if s.flight != nil && s.flight.over() {
		_ = s.land() // who sent it is told
	}
	t, err := s.begin(ctx, send)
	if err != nil {
		return nil, err
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

// connect returns a connection that writes, and whether it was used before. There is a stream then that its changes go to.
func (s *Store) connect(ctx context.Context) (c *conn, reused bool, err error) {
	if n := len(s.writers); n > 0 {
		c, reused, s.writers = s.writers[n-1], true, s.writers[:n-1]
	} else if c, err = s.dialer.dial(ctx); err != nil {
		return nil, false, err
	}
	if s.stream.id.Load() == 0 {
		if err := s.newStream(c); err != nil {
			_ = c.close() // the reason is known
			return nil, reused, err
		}
	}
	return c, reused, nil
}

// keep puts a connection whose transaction has ended back for the next one.
func (s *Store) keep(c *conn) { s.writers = append(s.writers, c) }

// begin begins a transaction, on a new connection if those at hand have died since they were last used.
func (s *Store) begin(ctx context.Context, send bool) (*tx, error) {
	for {
		c, reused, err := s.connect(ctx)
		if err == nil {
			t := s.newTx(c, send)
			c.add(step{verb: "begin", stmt: begin})
			c.add(step{verb: "begin", stmt: pin}, pinned(s.cfg.IdleTimeout, s.cfg.LockTimeout, s.cfg.StatementTimeout)...)
			if send && reused && t.guarded() {
				return t, nil
			}
			if s.seqs.stale() {
				t.takeSeqs(1)
			}
			t.look()
			if err = c.send(); err == nil {
				return t, nil
			}
			_ = c.close() // the reason is known
		}
		if !reused || lives(err) {
			return nil, err
		}
	}
}

func (s *Store) newTx(c *conn, send bool) *tx {
	return &tx{
		view: view{store: s, conn: c, live: true, scratch: s.scratch, before: s.flight},
		sent: send, epoch: s.epoch.Load(), known: map[lessor.LeaseID]rules.Held{}, ended: map[lessor.LeaseID]struct{}{},
	}
}

// run is one transaction of who has the turn, up to the sending of its commit.
func (t *tx) run(fn func(scheduler.Tx) error) (f *flight, err error) {
	over := false
	defer func() { // also when fn panics
		t.store.scratch = t.scratch
		if !over {
			_ = t.conn.close() // the panic says why
		}
		t.err = errOver
	}()
	refused := fn(t)
	if t.err == nil && refused == nil {
		_ = t.await() // kept in t.err
	}
	over = true
	switch {
	case t.err != nil: // whatever fn made of it, the transaction is spoilt
		t.rollback(t.err)
		if t.guard && answered(t.err) {
			return nil, t.suspect(t.err)
		}
		return nil, errors.Join(t.err, unless(refused, t.err))
	case refused != nil:
		t.rollback(nil)
		if errors.Is(refused, scheduler.ErrMoved) {
			return nil, t.suspect(refused)
		}
		return nil, refused
	}
	return t.commit()
}

func unless(err, known error) error {
	if errors.Is(err, known) {
		return nil
	}
	return err
}

// rollback ends a transaction that failed with err, nil if nothing is wrong with the connection.
func (t *tx) rollback(err error) {
	if err != nil && fatal(err) {
		_ = t.conn.close() // the reason is known
		return
	}
	t.conn.forget()
	_ = t.conn.settle() // whatever it says, it is undone
	if t.unsent {
		t.store.keep(t.conn)
		return
	}
	if err := t.conn.once(step{verb: "roll back", stmt: rollback}); err != nil {
		_ = t.conn.close()
		return
	}
	t.store.keep(t.conn)
}

// fatal reports whether a fault makes the connection useless. Faults that we made ourselves do not.
func fatal(err error) bool {
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return !lives(err)
	}
	return errors.Is(err, scheduler.ErrUnreachable)
}

// commit sends what was put off, the change row, COMMIT.
func (t *tx) commit() (*flight, error) {
	f := &flight{tx: t, stream: t.store.stream.id.Load(), done: make(chan struct{})}
	if t.wrote {
		f.n = t.store.stream.n + 1
		t.putServing()
		t.putChange(f.n)
	}
	t.putGuard(f)
	t.conn.add(step{verb: "commit", stmt: commit, tag: &f.tag})
	if err := t.conn.err; err != nil { // nothing was sent
		t.rollback(err)
		return nil, err
	}
	t.unsent = false
	f.trip = t.conn.start()
	t.store.flight = f
	return f, nil
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
	for _, id := range t.granted {
		s.specs.drop(id)
	}
	for id, h := range t.known {
		s.leases[id] = knownLease{h, t.epoch}
	}
	for id := range t.ended {
		delete(s.leases, id)
	}
	for id := range s.leases {
		if len(s.leases) <= maxKnown {
			break
		}
		delete(s.leases, id)
	}
}
