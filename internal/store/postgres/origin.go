package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store"
	"lessor/internal/store/postgres/wire"
)

// A database can go back: a standby is promoted that had not received everything, or an older copy is restored. The
// memory of a node then describes a history that no longer exists: its lane numbers belong to other lanes, and the jobs
// that it knows were never submitted. Behind a pooler no connection need break. Every transaction, every view and Serve
// look for signs:
//
//   - another timeline: every promotion and every recovery to a point in time begins one;
//   - the last change that this node published is gone;
//   - the last change of another node that this node has followed is gone;
//   - a sequence is behind a number that it gave.
//
// A sign makes the store lost: it drops its memory, skips the numbers that were seen outside, and makes the scheduler
// start again from the tables (scheduler.ErrWentBack).
const timeline = "left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)"

// sameTimeline is true on the timeline that a parameter names, or if the parameter is empty.
func sameTimeline(param string) string {
	return "case when " + param + "::text = '' then true else " + timeline + " = " + param + " end"
}

var (
	readOrigin = wire.SQL("select " + timeline + ", exists (" + lastChange + ")," +
		" coalesce((extract(epoch from pg_last_xact_replay_timestamp()) * 1000)::bigint, 0)")
	// checkOrigin reads how far the sequences are, so that a node that gives no numbers knows them too.
	checkOrigin = wire.SQL("select " + sameTimeline("$3") + " and exists (" + lastChange + ")," +
		" (select last_value from place), (select last_value from lane_id_seq)")
	renewing = wire.SQL("select pg_advisory_xact_lock($1::bigint)")
	// A sequence is set well beyond what it is raised to, so that a node that takes numbers at that moment stays below.
	raisePlaces = wire.SQL("select setval('place', $1::bigint + $2::bigint) from place where last_value < $1")
	raiseLanes  = wire.SQL("select setval('lane_id_seq', $1::bigint + $2::bigint) from lane_id_seq" +
		" where last_value < $1")
	raiseFence = wire.SQL("update serving set fence = $1::bigint where id and fence < $1")
)

// lastChange finds the last change of a stream, or the stream itself if it has none.
const lastChange = "select from change where stream = $1::bigint and n = $2::bigint" +
	" union all select from stream where id = $1 and $2 = 0"

const (
	// renewKey is the advisory lock under which sequences are raised: "lessob".
	renewKey = 0x6c6573736f62
	// Other nodes may have taken numbers since this one last read them: blocks of places for up to 1024 s, and lanes.
	morePlaces = 1024 * seqBlock
	moreLanes  = 10_000
	// The database's clock, by which other nodes give fences, may have been ahead of this node's reckoning by that many
	// milliseconds. If it was set back, they give to each job the number after its last.
	moreFence = 1000
)

// origin is what this node knows of the database's history.
type origin struct {
	timeline atomic.Pointer[string] // nil = not known yet
	// lost says that a sign was seen and that the store was not renewed since; why is for operators.
	lost atomic.Bool
	why  atomic.Pointer[string]
	// upTo is when the last commit was made that a promoted standby has; 0 = not known.
	upTo atomic.Int64
	// place and lane are the highest numbers that the sequences were seen to have given.
	place, lane atomic.Int64
	// fence is the highest of this node and, until the clock was last read, of others, but for moreFence.
	fence atomic.Int64
	clock atomic.Pointer[clockReading]
	age   atomic.Int64 // connections from before the last renewal are closed
}

// clockReading is what the database's clock said, and when.
type clockReading struct {
	at   lessor.Instant
	when time.Time
}

// errWentBack is the error of a transaction or a view that found a sign.
var errWentBack = fmt.Errorf("%w: its changes that this node knew are gone", scheduler.ErrWentBack)

// lose notes that the database went back; why is "" if that is not certain.
func (s *Store) lose(why string) {
	if why != "" {
		s.origin.why.CompareAndSwap(nil, &why)
	}
	s.epoch.Add(1)
	s.origin.lost.Store(true)
}

// WentBack implements scheduler.Store.
func (s *Store) WentBack() string {
	if s.origin.lost.Load() {
		return "" // renew finds out what is left
	}
	why := s.origin.why.Swap(nil)
	if why == nil {
		return ""
	}
	if at := s.origin.upTo.Load(); at > 0 {
		return fmt.Sprintf("%s; the last commit that is left was made at %s", *why, lessor.Instant(at))
	}
	return *why
}

// known returns the timeline as a parameter.
func (o *origin) known() []byte {
	if t := o.timeline.Load(); t != nil {
		return wire.Text(*t)
	}
	return wire.Text("")
}

// differs reports whether the database is on another timeline than before. If so, the store is lost.
func (s *Store) differs(at string) bool {
	known := s.origin.timeline.Load()
	if known == nil || *known == at || s.origin.lost.Load() {
		return false
	}
	s.lose(fmt.Sprintf("the database went from timeline %s to %s", *known, at))
	return true
}

// last is the last change of this node that is in the database.
type last struct{ stream, n int64 }

func (s *Store) lastChange() last {
	if l := s.stream.last.Load(); l != nil {
		return *l
	}
	return last{}
}

// addCheck adds the search for signs to what Serve sends.
func (s *Store) addCheck(c *wire.Conn) {
	l := s.lastChange()
	if l.stream == 0 || s.origin.lost.Load() {
		return
	}
	c.Add(wire.Step{Verb: "check the origin", Stmt: checkOrigin, Each: func(r *wire.Row) error {
		same, place, lane := r.Flag(), r.Int(), r.Int()
		switch {
		case !same && l.n == 0:
			s.lose("") // the stream may have been removed because this node was away
		case !same:
			s.lose("changes that this node made are gone, or the database is another")
		case place < s.origin.place.Load() || lane < s.origin.lane.Load():
			s.lose("") // a crash alone may take back numbers of transactions that were not committed
		}
		raise(&s.origin.place, place)
		raise(&s.origin.lane, lane)
		return nil
	}}, wire.Int8(l.stream), wire.Int8(l.n), s.origin.known())
}

// raise sets a number to v if v is larger.
func raise(to *atomic.Int64, v int64) {
	for old := to.Load(); old < v && !to.CompareAndSwap(old, v); old = to.Load() {
	}
}

// seen keeps what the database's clock said while nothing was lost, and ever before.
func (s *Store) seen(serving rules.Serving, latest lessor.Instant) {
	if !s.origin.lost.Load() {
		s.origin.clock.Store(&clockReading{serving.LastBeat, time.Now()})
		raise(&s.origin.fence, max(serving.Fence, int64(latest)))
	}
}

// newStream opens the stream of this node's changes. Its number is random, so that no number of a lost stream is used
// again.
func (s *Store) newStream(c *wire.Conn) error {
	id := 1 + rand.Int64N(1<<62)
	err := c.Do(wire.Step{Verb: "open a stream", Stmt: newStream, Each: func(r *wire.Row) error {
		s.origin.timeline.Store(new(r.Text()))
		return nil
	}}, wire.Int8(id))
	if err == nil {
		err = c.Do(wire.Step{Verb: "remove last changes of old streams", Stmt: dropOrphans},
			wire.Int8(goneAfter.Milliseconds()))
	}
	if err == nil {
		s.stream.n = 0
		s.stream.last.Store(&last{stream: id})
		s.stream.id.Store(id)
	}
	return err
}

// reconnect renews a store whose database went back, on a new connection. It returns an error even if that succeeds,
// because the caller decided on data that no longer exists.
func (s *Store) reconnect(ctx context.Context) error {
	for _, c := range s.writers {
		_ = c.Close() // it may lead to the database as it was before
	}
	s.writers = nil
	c, err := s.dialer.Dial(ctx, s.writeLimits())
	if err != nil {
		return err
	}
	if err := s.renew(c); err != nil {
		_ = c.Close() // the reason is known
		return err
	}
	s.keep(c)
	return errWentBack
}

// begun ends a transaction that has just begun if it is on another timeline.
func (t *tx) begun() (*tx, error) {
	if t.err != nil {
		t.rollback(nil)
		return nil, t.err
	}
	return t, nil
}

// renew drops what is in memory, and makes the database give only numbers that it never gave before. The
// writer that has the turn calls it, with no commit on its way.
func (s *Store) renew(c *wire.Conn) error {
	l, fence := s.lastChange(), s.origin.fence.Load()
	if r := s.origin.clock.Load(); r != nil { // other nodes gave fences on the same clock
		fence = max(fence, int64(r.at.Add(time.Since(r.when))))
	}
	known := s.origin.timeline.Load()
	c.Begin(begin, s.writeLimits())
	c.Add(wire.Step{Verb: "renew", Stmt: renewing}, wire.Int8(renewKey))
	c.Add(wire.Step{Verb: "read the origin", Stmt: readOrigin, Each: func(r *wire.Row) error {
		at, there := r.Text(), r.Flag()
		s.origin.upTo.Store(r.Int())
		switch {
		case known != nil && *known != at:
			s.lose(fmt.Sprintf("the database went from timeline %s to %s", *known, at))
		case l.n != 0 && !there:
			s.lose("the last change that this node made is gone")
		}
		return nil
	}}, wire.Int8(l.stream), wire.Int8(l.n))
	c.Add(wire.Step{Verb: "raise places", Stmt: raisePlaces},
		wire.Int8(s.origin.place.Load()+morePlaces), wire.Int8(64*seqBlock))
	c.Add(wire.Step{Verb: "raise lanes", Stmt: raiseLanes}, wire.Int8(s.origin.lane.Load()+moreLanes), wire.Int8(1000))
	c.Add(wire.Step{Verb: "raise fences", Stmt: raiseFence}, wire.Int8(fence+moreFence))
	c.Add(wire.Step{Verb: "commit", Stmt: commit})
	if err := c.Send(); err != nil {
		return err
	}
	if err := s.newStream(c); err != nil {
		return err
	}
	s.specs, s.leases = store.NewSpecs(), map[lessor.LeaseID]knownLease{}
	s.requests = newRequests()
	s.owners.forget()
	s.seqs, s.reckoned = seqs{}, reckoning{}
	s.served.Store(nil)
	s.stream.next.Store(nil)
	s.stream.followed.Store(0)
	s.origin.age.Add(1)
	s.origin.lost.Store(false)
	return nil
}
