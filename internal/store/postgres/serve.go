package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// Serve runs on a connection of its own, in one round trip. Service counts where a heartbeat could have been committed: unless a commit of
// this node has just shown that, an empty one does, which waits for the disk and the standbys like any other. The note itself is a transaction behind it:
// the row is locked first, so that the clock is read after the waiting. The rule is rules.Serve's (TestServeLikeTheRules).
// If the note is lost in a crash the gap is found again, since floor and beat stand in one row: it need not wait for the
// disk, and so no node waits for another's.
var (
	lockServing = wire.SQL("select 1 from serving where id for no key update")
	serve       = wire.SQL("update serving set last_beat = c.now," +
		" since = case when abs(c.now - last_beat) > 1000 or $1::boolean then c.now else since end," +
		" brake_until = case when c.now - last_beat < -1000 then 0 else brake_until end," +
		" lapsed_at = case when c.now - last_beat < -1000 then 0 else lapsed_at end" +
		" from (select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now offset 0) c where id" +
		" returning last_beat, since, brake_until, lapsed_at, fence, not exists (select from stream where id <> $2::bigint and seen_at > c.now - $3::bigint)")
	// proof makes a commit that writes nothing but itself. The lock is this node's: of those that hang, there is one.
	proof   = wire.SQL("select pg_advisory_xact_lock($1::bigint), pg_logical_emit_message(true, 'lessor', '')")
	noFlush = wire.SQL("select set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '1000', true)")
)

// brief are the limits of what a node says about itself.
var brief = wire.Limits{Idle: time.Second, Lock: time.Second, Statement: time.Second}

// serveTries is how often a Serve that met others, or a connection that had died, is repeated.
const serveTries = 3

// provedFor is how long a commit shows that the next would succeed: half of how often an idle node notes that it serves.
const provedFor = 125 * time.Millisecond

// prove notes that a commit of this node has just succeeded.
func (s *Store) prove() { s.proved.Store(int64(s.steps.since())) }

func (s *Store) isProved() bool {
	at := s.proved.Load()
	return at != 0 && s.steps.since()-time.Duration(at) < provedFor
}

// Serve implements scheduler.Store.
func (s *Store) Serve(ctx context.Context, anew bool) (serving rules.Serving, err error) {
	err = s.asServer(ctx, func(c *wire.Conn) error {
		sent := s.steps.since()
		var lone bool
		if serving, lone, err = s.serveOnce(c, anew); err != nil {
			return err
		}
		if s.steps.stepped(reading{at: serving.LastBeat, sent: sent, answer: s.steps.since()}) {
			if serving, lone, err = s.serveOnce(c, true); err != nil {
				return err
			}
		}
		s.seen(serving)
		s.lone.Store(lone)
		s.served.Store(&serving)
		if bad := errors.Join(s.dropSpent(c, serving.LastBeat), s.tidy(c, serving.LastBeat)); bad != nil { // it can wait, and says nothing against serving
			_ = c.Close()
			s.server = nil
		}
		return nil
	})
	return serving, err
}

// asServer runs fn on the connection that serves.
func (s *Store) asServer(ctx context.Context, fn func(*wire.Conn) error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("wait to serve: %w", context.Cause(ctx))
	}
	select {
	case <-s.closed:
		return errClosed
	case <-ctx.Done():
		return fmt.Errorf("wait to serve: %w", context.Cause(ctx))
	case s.serveTurn <- struct{}{}:
	}
	defer func() { <-s.serveTurn }()
	select {
	case <-s.closed: // both were ready
		return errClosed
	default:
	}
	for try := 1; ; try++ {
		c, reused, err := s.serverConn(ctx)
		if err != nil {
			return err
		}
		if err = fn(c); err == nil {
			return nil
		}
		_ = c.Close() // whatever it says, it is of no more use
		s.server = nil
		if try == serveTries || pgconn.Timeout(err) || errors.Is(err, scheduler.ErrWentBack) || !errors.Is(err, scheduler.ErrAgain) && !(reused && !wire.Usable(err)) {
			return err
		}
	}
}

// serverConn returns the connection that serves, and whether it was used before.
func (s *Store) serverConn(ctx context.Context) (*wire.Conn, bool, error) {
	if s.server != nil {
		return s.server, true, nil
	}
	c, err := s.dialer.Dial(ctx, brief)
	if err != nil {
		return nil, false, err
	}
	s.server = c
	return c, false, nil
}

// serveOnce notes that a heartbeat could be accepted now, or that it can be anew. It tells whether this is the only node.
func (s *Store) serveOnce(c *wire.Conn, anew bool) (serving rules.Serving, lone bool, err error) {
	proved, lost := s.isProved(), s.origin.lost.Load()
	if !proved {
		c.Begin(begin, brief)
		c.Add(wire.Step{Verb: "commit as a heartbeat does", Stmt: proof}, wire.Int8(s.proofKey))
		c.Add(wire.Step{Verb: "commit as a heartbeat does", Stmt: commit})
	}
	c.Begin(begin, brief)
	c.Add(wire.Step{Verb: "begin", Stmt: noFlush})
	s.addCheck(c)
	c.Add(wire.Step{Verb: "lock serving", Stmt: lockServing})
	c.Add(wire.Step{Verb: "serve", Stmt: serve, Each: func(r *wire.Row) error {
		serving, lone = readServing(r), r.Flag()
		return nil
	}}, wire.Flag(anew), wire.Int8(s.stream.id.Load()), wire.Int8(deadAfter.Milliseconds()))
	c.Add(wire.Step{Verb: "commit", Stmt: commit})
	if err = c.Send(); err == nil {
		err = warned(c)
	}
	if err == nil && !lost && s.origin.lost.Load() {
		return serving, lone, errWentBack
	}
	if err == nil && !proved {
		s.prove()
	}
	return serving, lone, err
}

// SoleNode implements scheduler.Tx.
func (t *tx) SoleNode() bool { return t.store.lone.Load() }
