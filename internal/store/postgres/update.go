package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// errOver is the error of a transaction that is used after its end.
var errOver = errors.New("the transaction is over")

// Update implements scheduler.Store. ctx ends the waiting for a turn and for a connection; it does not interrupt a
// transaction that has begun.
func (s *Store) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	if err := s.turn.Enter(ctx); err != nil {
		return err
	}
	defer s.turn.Leave()
	f, err := s.transact(ctx, clockRead, false, fn)
	if err != nil {
		return err
	}
	f.read()
	return s.awaitAll()
}

// Send implements scheduler.Store. A goroutine reads the answer to the commit and ends with it.
func (s *Store) Send(
	ctx context.Context, on scheduler.Footing, fn func(scheduler.Tx) error,
) (wait func() error, err error) {
	if err := s.turn.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.turn.Leave()
	k := clockReckoned
	if on != scheduler.Shared {
		k = guarded
	}
	f, err := s.transact(ctx, k, on == scheduler.Behind, fn)
	if err != nil {
		return nil, err
	}
	go f.read()
	return f.wait, nil
}

// kind is how a transaction begins.
type kind int

const (
	// clockRead: with a reading of the clock.
	clockRead kind = iota
	// clockReckoned: with a reckoned clock and without a round trip, if the clock is known well enough.
	clockReckoned
	// guarded: the same, behind commits that are on their way.
	guarded
)

// transact runs fn and sends its commit. With behind, fn builds on the commits on their way, and fails if one of them
// has failed, whoever knows of that.
func (s *Store) transact(ctx context.Context, k kind, behind bool, fn func(scheduler.Tx) error) (*flight, error) {
	for len(s.flights) > 0 && s.flights[0].over() {
		if s.awaitOldest() != nil && behind {
			return nil, errBefore
		}
	}
	if s.origin.lost.Load() {
		_ = s.awaitAll() // begin fails
	}
	if len(s.flights) == maxFlights && s.awaitOldest() != nil {
		return nil, errBefore
	}
	t, err := s.begin(ctx, k)
	if err != nil {
		return nil, err
	}
	return t.run(fn)
}

// connect returns a connection for writing, and whether it was used before. It opens a stream of changes if there is
// none.
func (s *Store) connect(ctx context.Context) (c *wire.Conn, reused bool, err error) {
	if s.origin.lost.Load() {
		return nil, false, s.reconnect(ctx)
	}
	if n := len(s.writers); n > 0 {
		c, reused, s.writers = s.writers[n-1], true, s.writers[:n-1]
	} else if c, err = s.dialer.Dial(ctx, s.writeLimits()); err != nil {
		return nil, false, err
	}
	if s.stream.id.Load() == 0 {
		if err := s.newStream(c); err != nil {
			s.abandon(c)
			return nil, reused, err
		}
	}
	return c, reused, nil
}

func (s *Store) writeLimits() wire.Limits {
	return wire.Limits{Idle: s.cfg.IdleTimeout, Lock: s.cfg.LockTimeout, Statement: s.cfg.StatementTimeout}
}

// keep stores a connection whose transaction has ended for the next one.
func (s *Store) keep(c *wire.Conn) { s.writers = append(s.writers, c) }

// abandon closes a connection that is of no more use. The database may have crashed, and may then give the block of
// places again, if no commit came after its reservation.
func (s *Store) abandon(c *wire.Conn) {
	_ = c.Close() // the reason is known
	s.seqs = seqs{}
}

// begin begins a transaction. It uses a new connection if those at hand have died.
func (s *Store) begin(ctx context.Context, k kind) (*tx, error) {
	for {
		c, reused, err := s.connect(ctx)
		if err == nil {
			t := s.newTx(c)
			reckoned := k != clockRead && reused && t.reckon()
			t.behind = reckoned && len(s.flights) > 0
			if t.behind || reckoned && k == guarded && s.usual >= busyFrom {
				c.Pipeline()
			}
			c.Begin(begin, s.writeLimits())
			if reckoned {
				t.guard = k == guarded
				t.push()
				return t, nil
			}
			if s.awaitAll() != nil {
				t.rollback(nil)
				return nil, errBefore
			}
			if s.seqs.stale() {
				t.takeSeqs(1)
			}
			t.readClock()
			t.unsent = false
			if err = c.Send(); err == nil {
				return t.begun()
			}
			s.abandon(c)
		}
		if !reused || wire.Usable(err) {
			return nil, err
		}
	}
}

func (s *Store) newTx(c *wire.Conn) *tx {
	return &tx{
		view:  view{store: s, conn: c, live: true, unsent: true, scratch: s.scratch},
		epoch: s.epoch.Load(),
		known: make(map[lessor.LeaseID]*rules.Held, s.usual), ended: make(map[lessor.LeaseID]struct{}, s.usual/2),
		requests: map[scheduler.RequestRef]struct{}{},
	}
}

// run runs a transaction up to the sending of its commit.
func (t *tx) run(fn func(scheduler.Tx) error) (f *flight, err error) {
	over := false
	defer func() { // also when fn panics
		t.store.scratch = t.scratch
		if !over {
			_ = t.conn.Close() // the panic says why
		}
		t.err = errOver
	}()
	refused := fn(t)
	if t.err == nil && refused == nil {
		t.finish()
	}
	over = true
	switch {
	case t.err != nil: // whatever fn returned, the transaction is spoilt
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

// rollback ends a transaction that failed with err. With nil nothing is wrong with the connection.
func (t *tx) rollback(err error) {
	if t.undo(err) {
		t.store.keep(t.conn)
	} else {
		t.store.abandon(t.conn)
	}
}

// undo rolls back and reports whether the connection is still of use.
func (t *tx) undo(err error) bool {
	if err != nil && fatal(err) {
		return false
	}
	_ = t.conn.Settle() // whatever the answer is, it is undone
	t.conn.Discard()
	return t.unsent || t.conn.Do(wire.Step{Verb: "roll back", Stmt: rollback}) == nil
}

// fatal reports whether a fault makes the connection useless.
func fatal(err error) bool {
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return !wire.Usable(err)
	}
	return errors.Is(err, scheduler.ErrUnreachable)
}

// commit sends the writes that were put off, the change row and COMMIT.
func (t *tx) commit() (*flight, error) {
	s := t.store
	f := &flight{tx: t, stream: s.stream.id.Load(), order: t.order, held: t.order > 0, done: make(chan struct{})}
	if t.wrote {
		f.n = s.lastNumber() + 1
		t.putServing()
		t.putChange(f.n)
	}
	t.putGuard(f)
	t.conn.Add(wire.Step{Verb: "commit", Stmt: commit, Tag: &f.tag})
	if err := t.conn.Err(); err != nil { // of an earlier part, or of a statement that could not be prepared
		t.rollback(err)
		if answered(err) {
			err = t.suspect(err)
		}
		return nil, err
	}
	t.unsent = false
	f.trip = t.conn.Start()
	f.held = f.trip.First() && f.held // the first part has begun it
	s.flights = append(s.flights, f)
	for _, spec := range t.inserted {
		s.specs.Put(spec)
	}
	return f, nil
}

// updateCaches brings the caches up to date after the commit.
func (t *tx) updateCaches() {
	s := t.store
	for _, id := range t.granted {
		s.specs.Drop(id)
	}
	s.usual = len(t.known)
	for _, h := range t.known {
		s.knowLease(h, t.epoch)
	}
	for id := range t.ended {
		s.forgetLease(id)
	}
	s.spend(len(t.ended))
	for id := range s.leases {
		if len(s.leases) <= maxKnown {
			break
		}
		s.forgetLease(id)
	}
}
