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

// A node that has the database to itself, and is busy, needs no answer before it decides: it knows its leases, what the others did
// (nothing), and the time well enough. Such a transaction is one round trip. Its last statement is a guard, which fails it if another
// node has committed anything that was not followed, if our own commit before it failed, or if the clock is not what was thought: behind all
// rows that were changed and behind the gate, so that nobody can have come between. Whatever is not known is looked up as usual.
var guard = wire.SQL("select 1 / (case when abs(c.now - $4::bigint) < 1000" +
	" and ($5::bigint = 0 or exists (select from change where stream = $3 and n = $5 and not void)) and not exists (select from (" + othersAt + ") p" +
	" cross join lateral (select from change where stream = p.id and n > p.n offset 0 limit 1) x)" +
	" and not exists (select from unnest($1, $2) as a (stream, n) where a.n > 0 and (select n from change where stream = a.stream and n = a.n offset 0) is null) then 1 else 0 end), c.now" +
	" from (select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now offset 0) c")

// errOthers: a node that took itself to be alone is not.
var errOthers = fmt.Errorf("%w: another node came between", scheduler.ErrAgain)

// guardFor is how old what is known of the clock and of our serving may be: less than the gap that moves the floor.
const guardFor = 500 * time.Millisecond

// reckoning is a reading of the database's clock, when its answer came, and when the last answer came that it agrees with.
type reckoning struct {
	at            lessor.Instant
	when, checked time.Time
}

// now is a time that the database's clock has reached by now, if it was not set back.
func (r reckoning) now() lessor.Instant { return r.at.Add(time.Since(r.when)) }

// note keeps a reading, unless the one at hand says more: an answer may have come late.
func (r *reckoning) note(at lessor.Instant, when time.Time) {
	reckoned := r.at.Add(when.Sub(r.when))
	if r.when.IsZero() || at > reckoned || reckoned.Sub(at) > guardFor {
		r.at, r.when = at, when
	}
	r.checked = when
}

// reckon tells t the time without a round trip, if enough is known.
func (t *tx) reckon() bool {
	s := t.store
	served := s.served.Load()
	if served == nil || s.stream.next.Load() == nil || s.seqs.stale() || time.Since(s.reckoned.checked) > guardFor {
		return false
	}
	t.now, t.row = s.reckoned.now(), *served
	if t.now.Sub(served.LastBeat).Abs() > guardFor {
		return false
	}
	t.serving = rules.Serve(t.row, rules.Tick{}, rules.Tick{Wall: t.now})
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

// suspect says what a fault that the server answered with means in a guarded transaction: others may have caused it before the guard
// could tell. Who repeats it finds out.
func (t *tx) suspect(err error) error {
	if !t.guard || errors.Is(err, errOthers) {
		return err
	}
	return fmt.Errorf("%w: %w", errOthers, opaque{err})
}

// Changes implements scheduler.View. In a guarded transaction there are none: if there were it could not commit. One that had to lock has read them, so
// that nothing is decided on a lease that came with them.
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

// knownLease is a lease as this node last saw it. That is how it is as long as no other node has written anything: an epoch.
type knownLease struct {
	held  *rules.Held
	epoch int64
}

// maxKnown bounds the leases that are known, about 25 MB.
const maxKnown = 50_000

// atHand returns leases without a look at the table, if all of them are known for certain, and live.
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
