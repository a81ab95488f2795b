package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// Serve runs on a connection of its own, in one round trip. A node serves if it could have committed a heartbeat.
// Unless a commit of this node has just shown that, Serve makes an empty commit, which waits for the disk and the
// standbys like any other. The note itself is a transaction behind it. It locks the row first, so that the clock is
// read after the waiting. The rules are those of rules.Serve and rules.BeginToServe (TestServeAgreesWithTheRules). The
// row keeps the last beat of a node that begins only if the floor moves; the answer has the clock.
//
// The note does not wait for the disk, so that no node waits for another's. If it is lost in a crash the gap is found
// again, since floor and beat stand in one row.
var (
	lockServing = wire.SQL("select 1 from serving where id for no key update")
	serve       = wire.SQL("update serving set" +
		" last_beat = case when $4::boolean and not " + floorMoves + " then last_beat else c.now end," +
		" since = case when " + floorMoves + " then c.now else since end," +
		" brake_until = case when c.now - last_beat < -1000 then 0 else brake_until end," +
		" lapsed_at = case when c.now - last_beat < -1000 then 0 else lapsed_at end," +
		" latest = greatest(latest, last_beat, c.now)" +
		" from (select " + clockMillis + " as now offset 0) c where id" +
		" returning c.now, since, brake_until, lapsed_at, fence, latest," +
		" not exists (select from stream where id <> $2::bigint and seen_at > c.now - $3::bigint)")
	// proof makes an empty commit. Each node takes a lock of its own, so that at most one of its proofs hangs.
	proof = wire.SQL("select pg_advisory_xact_lock($1::bigint), pg_logical_emit_message(true, 'lessor', '')")
)

// floorMoves: $1 says that service begins anew, $4 that the node begins to serve.
const floorMoves = "($1::boolean or abs(c.now - last_beat) > case when $4::boolean then 500 else 1000 end)"

// brief are the limits of transactions in which a node notes something about itself.
var brief = wire.Limits{Idle: time.Second, Lock: time.Second, Statement: time.Second}

// serveTries is how often a note is tried that lost against another node, or whose connection had died.
const serveTries = 3

// provedFor is how long a commit proves that the next would succeed: half of the time between two notes of an idle
// node.
const provedFor = 125 * time.Millisecond

// prove notes that a commit of this node has just succeeded.
func (s *Store) prove() { s.proved.Store(int64(s.clockSteps.since())) }

func (s *Store) isProved() bool {
	at := s.proved.Load()
	return at != 0 && s.clockSteps.since()-time.Duration(at) < provedFor
}

// Serve implements scheduler.Store.
func (s *Store) Serve(ctx context.Context, anew bool) (serving rules.Serving, err error) {
	err = s.asServer(ctx, func(c *wire.Conn) error {
		sent := s.clockSteps.since()
		var sole bool
		if serving, sole, err = s.serveOnce(c, anew); err != nil {
			return err
		}
		if s.clockSteps.stepped(reading{at: serving.LastBeat, sent: sent, answer: s.clockSteps.since()}) {
			if serving, sole, err = s.serveOnce(c, true); err != nil {
				return err
			}
		}
		s.soleNode.Store(sole)
		s.served.Store(&serving)
		if errors.Join(s.dropSpent(c, serving.LastBeat), s.tidy(c, serving.LastBeat)) != nil {
			_ = c.Close() // the tidying can wait; the node serves all the same
			s.server = nil
		}
		return nil
	})
	return serving, err
}

// asServer runs fn on the connection that serves.
func (s *Store) asServer(ctx context.Context, fn func(*wire.Conn) error) error {
	if err := s.serveTurn.Enter(ctx); err != nil {
		return err
	}
	defer s.serveTurn.Leave()
	for try := 1; ; try++ {
		c, reused, err := s.serverConn(ctx)
		if err != nil {
			return err
		}
		if err = fn(c); err == nil {
			return nil
		}
		_ = c.Close() // the reason is known
		s.server = nil
		if try == serveTries || pgconn.Timeout(err) || errors.Is(err, scheduler.ErrWentBack) {
			return err
		}
		if died := reused && !wire.Usable(err); !died && !errors.Is(err, scheduler.ErrAgain) {
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

// serveOnce notes that a heartbeat could be accepted now. With anew, service begins now. It reports whether this is the
// only node.
func (s *Store) serveOnce(c *wire.Conn, anew bool) (serving rules.Serving, sole bool, err error) {
	proved, lost, latest := s.isProved(), s.origin.lost.Load(), lessor.Instant(0)
	if !proved {
		c.Begin(begin, brief)
		c.Add(wire.Step{Verb: "commit as a heartbeat does", Stmt: proof}, wire.Int8(s.proofKey))
		c.Add(wire.Step{Verb: "commit as a heartbeat does", Stmt: commit})
	}
	err = unflushed(c, brief, func() {
		s.addCheck(c)
		c.Add(wire.Step{Verb: "lock serving", Stmt: lockServing})
		c.Add(wire.Step{Verb: "serve", Stmt: serve, Each: func(r *wire.Row) error {
			serving, latest, sole = readServing(r), r.Instant(), r.Flag()
			return nil
		}}, wire.Flag(anew), wire.Int8(s.stream.id.Load()), wire.Int8(deadAfter.Milliseconds()), wire.Flag(s.begins()))
	})
	if err == nil {
		err = warned(c)
	}
	if err == nil && !lost && s.origin.lost.Load() {
		return serving, sole, errWentBack
	}
	if err != nil {
		return serving, sole, err
	}
	s.seen(serving, latest)
	s.notedAt = s.clockSteps.since()
	if !proved {
		s.prove()
	}
	return serving, sole, nil
}

// begins reports whether the node begins to serve with its next note.
func (s *Store) begins() bool {
	return s.notedAt == 0 || s.clockSteps.since()-s.notedAt > rules.ServedFor
}

// SoleNode implements scheduler.Tx.
func (t *tx) SoleNode() bool { return t.store.soleNode.Load() }
