package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// A busy node that has the database to itself decides without reading: it knows its leases and, well enough, the time,
// and the other nodes did nothing. Such a transaction is one round trip. Its last statement is the guard. It fails the
// transaction if another node has committed a change that this node has not followed, if our own commit before it
// failed, or if the clock is not as reckoned. It stands behind all changed rows and behind the gate, so that no other
// node can write in between. What the node does not know it reads as usual.
var guard = wire.SQL("select 1 / (case when abs(c.now - $4::bigint) < 1000" +
	" and ($5::bigint = 0 or exists (select from change where stream = $3 and n = $5 and not void))" +
	" and not exists (select from (" + othersAt + ") p" +
	" cross join lateral (select from change where stream = p.id and n > p.n offset 0 limit 1) x)" +
	" and not exists (select from unnest($1, $2) as a (stream, n) where a.n > 0" +
	" and (select n from change where stream = a.stream and n = a.n offset 0) is null) then 1 else 0 end), c.now" +
	" from (select " + clockMillis + " as now offset 0) c")

// errOthers: a node that believed itself alone is not.
var errOthers = fmt.Errorf("%w: another node came between", scheduler.ErrAgain)

// guardFor is how old a reading of the clock and of the serving row may be: less than the gap that moves the floor.
const guardFor = 500 * time.Millisecond

// reckoning is a reading of the database's clock: when its answer came, and when the last answer came that agrees with
// it.
type reckoning struct {
	at            lessor.Instant
	when, checked time.Time
}

// now is an instant that the database's clock has reached by now, if it was not set back.
func (r reckoning) now() lessor.Instant { return r.at.Add(time.Since(r.when)) }

// note keeps a reading, unless the earlier one is more precise because this answer came late.
func (r *reckoning) note(at lessor.Instant, when time.Time) {
	reckoned := r.at.Add(when.Sub(r.when))
	if r.when.IsZero() || at > reckoned || reckoned.Sub(at) > guardFor {
		r.at, r.when = at, when
	}
	r.checked = when
}

// reckon sets the time of t without a round trip, and reports whether enough is known for that.
func (t *tx) reckon() bool {
	s := t.store
	served := s.served.Load()
	if served == nil || s.stream.next.Load() == nil || s.seqs.stale() || time.Since(s.reckoned.checked) > guardFor {
		return false
	}
	// What another connection read may be newer than what is reckoned.
	t.now, t.row = max(s.reckoned.now(), lessor.Instant(s.stream.followed.Load())), *served
	if t.now.Sub(served.LastBeat).Abs() > guardFor {
		return false
	}
	t.serving = rules.Serve(t.row, rules.ClockReading{}, rules.ClockReading{Wall: t.now})
	return true
}

// putGuard adds the guard to the last round trip.
func (t *tx) putGuard(f *flight) {
	if !t.guard {
		return
	}
	before := int64(0)
	if t.ordered {
		before = t.store.lastNumber()
	}
	streams, ns := arraysOf(*t.store.stream.next.Load())
	t.conn.Add(wire.Step{Verb: "guard", Stmt: guard, Guard: errOthers, Each: func(r *wire.Row) error {
		r.Skip(1)
		f.reckoned.note(r.Instant(), time.Now())
		return nil
	}}, streams, ns, wire.Int8(f.stream), wire.Instant(t.now), wire.Int8(before))
}

// suspect turns a fault of a guarded transaction into errOthers: another node may have caused it before the guard could
// tell. The repetition finds out.
func (t *tx) suspect(err error) error {
	if !t.guard || errors.Is(err, errOthers) {
		return err
	}
	return fmt.Errorf("%w: %w", errOthers, opaque{err})
}

// Changes implements scheduler.View. A guarded transaction has none, because it cannot commit if there are. One that
// had to lock has read them, so that nothing is decided on a lease that came with them.
func (t *tx) Changes(ctx context.Context, after scheduler.Position) ([]scheduler.Change, error) {
	if t.guard && t.err == nil && t.ahead == nil && maps.Equal(*t.store.stream.next.Load(), after) {
		return nil, nil
	}
	changes, err := t.view.Changes(ctx, after)
	if t.guard && len(changes) > 0 {
		t.err = errOthers
		return nil, t.err
	}
	return changes, err
}

// knownLease is a lease as this node last saw it. It stays so for an epoch: as long as no other node has written
// anything.
type knownLease struct {
	held  *rules.Held
	epoch int64
}

// maxKnown bounds the known leases, about 25 MB.
const maxKnown = 50_000

// atHand returns leases without reading the table, if all of them are known and live.
func (t *tx) atHand(ids []lessor.LeaseID) (map[lessor.LeaseID]*rules.Held, bool) {
	if !t.guard || t.leased || t.epoch != t.store.epoch.Load() {
		return nil, false
	}
	leases := make(map[lessor.LeaseID]*rules.Held, len(ids))
	for _, id := range ids {
		k, ok := t.store.leases[id]
		if !ok || k.epoch != t.epoch || t.changed(id) || rules.Over(k.held, t.now, t.serving) != "" {
			return nil, false
		}
		leases[id] = new(*k.held)
	}
	return leases, true
}

// changed reports whether a commit on its way changes a lease.
func (t *tx) changed(id lessor.LeaseID) bool {
	return slices.ContainsFunc(t.store.flights, func(f *flight) bool { return f.changes(id) })
}
