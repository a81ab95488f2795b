package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

var (
	newStream = wire.SQL("insert into stream (id, seen_at) overriding system value" +
		" values ($1::bigint, " + clockMillis + ") returning " + timeline)
	// putChange fails if the stream is not registered any more, or may be removed before the commit, so that no node
	// would see its changes; and if the database went back.
	putChange = wire.SQL("with put as (insert into change (stream, n, at, void, data)" +
		" select id, $2::bigint, $3::bigint, false, $4::bytea from stream where id = $1::bigint" +
		" and seen_at > $3 - " + strconv.FormatInt((deadAfter/2).Milliseconds(), 10) +
		" and ($2 = 1 or exists (select from change where stream = $1 and n = $2 - 1)) and " + sameTimeline("$5") +
		" returning 1) select 1 / count(*) from put")
	// readChanges returns, for each stream, the change that this node followed last, without its data, and those behind
	// it; a null if there are none. The last change of a stream that was removed is scheduler.Ended.
	readChanges = wire.SQL("select p.id, c.n, c.data from (" + othersAt + ") p left join lateral" +
		" (select n, case when n > p.n then data else '' end as data from change where stream = p.id and n >= p.n" +
		" union all select " + strconv.FormatInt(scheduler.Ended, 10) + ", '' where p.removed) c on true" +
		" order by p.id, c.n")
	// readGone says for each change that was followed, and is not there any more, whether its stream was removed.
	readGone = wire.SQL("select not exists (select from stream where id = a.stream)" +
		" from unnest($1::bigint[], $2::bigint[]) as a (stream, n)" +
		" where a.n > 0 and (select n from change where stream = a.stream and n = a.n offset 0) is null")
	readPosition = wire.SQL("select s.id, (select max(n) from change c where c.stream = s.id) from stream s" +
		" where s.id <> $1::bigint")
)

// othersAt is the position of this node in the stream of each other node: those that it follows, also if they were
// removed, and those that are new. The server joins both lists in their order, so that the cost grows with the number
// of streams, not with its square.
const othersAt = "select coalesce(s.id, a.stream) as id, coalesce(a.n, 0) as n, s.id is null as removed" +
	" from stream s full join unnest($1::bigint[], $2::bigint[]) as a (stream, n) on a.stream = s.id" +
	" where s.id is distinct from $3::bigint"

// stream is the series of changes that this store publishes.
type stream struct {
	id atomic.Int64 // 0 = there is none yet
	n  int64        // the last number that was used; belongs to the writer
	// followed is when the changes of others were last read, on the database's clock.
	followed atomic.Int64
	// next is the position from which they will probably be read next.
	next atomic.Pointer[scheduler.Position]
	// last is the last change that is known to be in the database.
	last atomic.Pointer[last]
}

// forget gives up a stream whose next number is unknown. The node opens another one.
func (s *stream) forget() {
	s.id.Store(0)
	s.n = 0
	s.last.Store(nil)
}

// raise notes that a change is in the database. That cannot wait for the next transaction: Serve looks for the last
// change, and other nodes keep only that of a stream that they remove. A stream that was given up stays so.
func (s *stream) raise(to last) {
	for old := s.last.Load(); old != nil && old.stream == to.stream && old.n < to.n; old = s.last.Load() {
		if s.last.CompareAndSwap(old, &to) {
			return
		}
	}
}

// Publish implements scheduler.Tx.
func (t *tx) Publish(_ context.Context, data []byte) error {
	if t.err == nil && len(data) > 0 {
		t.published, t.wrote = data, true
	}
	return t.err
}

// errStreamLost: other nodes took this one for dead and removed its stream, or the database went back.
var errStreamLost = errors.New("the stream of this node, or its last change, is gone")

// putChange adds the change row of a commit. Every commit that wrote has one; its number settles a lost answer.
func (t *tx) putChange(n int64) {
	lost := fmt.Errorf("%w: %w", scheduler.ErrAgain, errStreamLost)
	t.conn.Add(wire.Step{Verb: "publish", Stmt: putChange, Guard: lost},
		wire.Int8(t.store.stream.id.Load()), wire.Int8(n), wire.Instant(t.now), append([]byte{}, t.published...),
		t.store.origin.known())
}

// keepFor is how long changes are kept for other nodes. forgetAfter is the shorter time after which a reader counts as
// having lost track.
const (
	keepFor     = time.Minute
	forgetAfter = keepFor / 2
)

// Position implements scheduler.View.
func (v *view) Position(context.Context) (scheduler.Position, error) {
	p := scheduler.Position{}
	if next := v.store.stream.next.Load(); next != nil && !v.store.origin.lost.Load() {
		streams, ns := arraysOf(*next)
		v.add("read position", wire.Step{Stmt: readGone, Each: func(r *wire.Row) error {
			v.gone(r.Flag())
			return nil
		}}, streams, ns)
	}
	err := v.query("read position", readPosition, func(r *wire.Row) error {
		stream := r.Int()
		if n := r.Int(); n > 0 {
			p[stream] = n
		}
		return nil
	}, wire.Int8(v.store.stream.id.Load()))
	v.store.epoch.Add(1) // the reader has lost track
	if !v.live {         // a transaction reads a position to compare, not to follow from
		v.store.stream.followed.Store(int64(v.now))
	}
	return p, err
}

// Changes implements scheduler.View. After so long a time that changes may be gone, it returns a gap.
func (v *view) Changes(_ context.Context, after scheduler.Position) ([]scheduler.Change, error) {
	if v.err != nil {
		return nil, v.err
	}
	defer func() { v.store.stream.followed.Store(int64(v.now)) }()
	followed := lessor.Instant(v.store.stream.followed.Load())
	if followed != 0 && v.now.Sub(followed).Abs() > forgetAfter {
		return []scheduler.Change{{N: -1}}, nil
	}
	read := v.ahead
	if v.ahead = nil; read == nil || !maps.Equal(read.after, after) {
		read = v.addChanges(maps.Clone(after))
		if v.live {
			v.readClock()
		}
		if err := v.send("read changes"); err != nil {
			return nil, err
		}
	}
	next := read.after
	if next == nil {
		next = scheduler.Position{}
	}
	for _, c := range read.changes {
		next.Move(c)
	}
	if len(read.changes) > 0 {
		v.store.epoch.Add(1)
	}
	v.store.stream.next.Store(&next)
	return read.changes, nil
}

// following is one reading of the streams.
type following struct {
	after   scheduler.Position
	changes []scheduler.Change
}

// addChanges adds a reading of the streams to the next round trip.
func (v *view) addChanges(after scheduler.Position) *following {
	f := &following{after: after}
	streams, ns := arraysOf(after)
	first := int64(0) // the stream whose first change was read
	v.add("read changes", wire.Step{Stmt: readChanges, Each: func(r *wire.Row) error {
		c := scheduler.Change{Stream: r.Int(), N: r.Int(), Data: r.Bytes()}
		if c.Stream == first {
			f.changes = append(f.changes, c)
			return nil
		}
		first = c.Stream
		switch followed := after[c.Stream]; {
		case followed > 0 && c.N != followed:
			v.gone(c.N == scheduler.Ended)
		case followed == 0 && c.N > 0:
			f.changes = append(f.changes, c)
		}
		return nil
	}}, streams, ns, wire.Int8(v.store.stream.id.Load()))
	return f
}

// gone fails the view, because a change that this node has followed is missing. If its stream was removed, both may be
// missing because their node died long ago.
func (v *view) gone(removed bool) {
	why := "changes of another node that this node had followed are gone"
	if removed {
		why = ""
	}
	v.store.lose(why)
	v.err = errWentBack
}

// arraysOf returns a position as two arrays.
func arraysOf(p scheduler.Position) (streams, ns []byte) {
	ids, last := make([]int64, 0, len(p)), make([]int64, 0, len(p))
	for stream, n := range p {
		ids, last = append(ids, stream), append(last, n)
	}
	return wire.Int8s(ids), wire.Int8s(last)
}

// locked makes the round trip that locks. After locking, a node follows the changes of the others, from where it
// stopped before. They are read in the same round trip, behind the lock, and the clock behind them: a time that is
// written must not lie before what was read.
func (t *tx) locked(verb string, lock func()) error {
	var ahead *following
	t.addLock(lock, &ahead)
	err := t.send(verb)
	if err == nil {
		t.ahead = ahead
	}
	return err
}

// lockedFirst is like locked, but runs before the deferred writes and does not wait for the commit on its way. It is
// for locks on rows that neither has changed.
func (t *tx) lockedFirst(lock func()) error {
	if t.err != nil {
		return t.err
	}
	if t.unsent { // BEGIN is among the statements that were put off
		return t.locked("lock", lock)
	}
	var ahead *following
	if err := t.conn.SendFirst(func() { t.addLock(lock, &ahead) }); err != nil {
		t.err = err
	}
	if t.err == nil {
		t.ahead = ahead
	}
	return t.err
}

func (t *tx) addLock(lock func(), ahead **following) {
	lock()
	if next := t.store.stream.next.Load(); next != nil {
		*ahead = t.addChanges(maps.Clone(*next))
	}
	t.readClock()
}
