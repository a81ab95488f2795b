package memory

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// stream is the row of a node that publishes changes.
type stream struct {
	seenAt  lessor.Instant
	busy    int
	ratedAt lessor.Instant
	workers []byte
	metAt   lessor.Instant
}

// change is an entry of a stream. A void one stands for a commit that did not happen.
type change struct {
	data []byte
	void bool
	at   lessor.Instant
}

// ownStream is the series of changes that this node publishes, and how far it follows those of the others.
type ownStream struct {
	id       int64 // 0 = there is none
	n        int64 // the last number that is in the database
	followed lessor.Instant
	next     *scheduler.Position // nil = it follows none yet
	read     reached             // where next was read
}

// reached is a state of a database.
type reached struct {
	db      *Database
	version int64
}

// forget gives up a stream whose next number is unknown.
func (s *ownStream) forget() { s.id, s.n, s.read = 0, 0, reached{} }

// newStream opens the stream of this node's changes, and removes the last changes of streams that are long gone.
func (s *Store) newStream() {
	d, now := s.db, s.db.Clock()
	for k, c := range d.state.changes.all() {
		if c.at < now.Add(-goneAfter) && !d.streams.has(key{n: k.n}) {
			d.state.changes.drop(k)
		}
	}
	s.stream.id, s.stream.n, s.origin.timeline = s.ids.Add(1), 0, d.timeline
	d.streams.put(key{n: s.stream.id}, stream{seenAt: now})
	d.version++
}

// noteStream changes the row of a stream, if it is there.
func (d *Database) noteStream(id int64, change func(*stream)) {
	if r, ok := d.streams.get(key{n: id}); ok {
		change(&r)
		d.streams.put(key{n: id}, r)
	}
}

// Publish implements scheduler.Tx.
func (t *tx) Publish(_ context.Context, data []byte) error {
	if t.err == nil && len(data) > 0 {
		t.published = data
	}
	return t.err
}

// The times of changes, as in package postgres.
const (
	keepFor     = time.Minute
	forgetAfter = keepFor / 2
	tidyEvery   = keepFor / 3
	deadAfter   = 5 * keepFor
	goneAfter   = 7 * 24 * time.Hour
)

// Position implements scheduler.View.
func (v *view) Position(context.Context) (scheduler.Position, error) {
	s := v.read("read position")
	if v.err != nil {
		return nil, v.err
	}
	v.db.mu.Lock()
	defer v.db.mu.Unlock()
	own := &v.store.stream
	if own.next != nil && !v.store.origin.lost && v.gone(*own.next) {
		return nil, v.err
	}
	p := scheduler.Position{}
	for k := range v.streams.all() {
		for c := range s.changes.back(key{n: k.n, m: math.MaxInt64}) {
			if c.n == k.n && k.n != own.id {
				p[k.n] = c.m
			}
			break
		}
	}
	if v.tx == nil { // a transaction reads a position to compare, not to follow from
		own.followed = v.now
	}
	return p, v.err
}

// Changes implements scheduler.View. It returns a gap if so much time has passed that changes may be gone.
func (v *view) Changes(_ context.Context, after scheduler.Position) ([]scheduler.Change, error) {
	s := v.read("read changes")
	if v.err != nil {
		return nil, v.err
	}
	v.db.mu.Lock()
	defer v.db.mu.Unlock()
	if v.tx != nil {
		v.tx.readClock()
	}
	own := &v.store.stream
	followed := own.followed
	if own.followed = v.now; followed != 0 && v.now.Sub(followed).Abs() > forgetAfter {
		return []scheduler.Change{{N: -1}}, v.err
	}
	here, guard := reached{v.db, v.version}, v.tx != nil && v.tx.guard
	switch {
	case guard:
		here.db = nil // it does not read that streams have ended
	case v.tx != nil:
		here.version = v.tx.seen
	}
	if own.next != nil && !guard && own.read == here && maps.Equal(*own.next, after) {
		return nil, v.err
	}
	if v.gone(after) {
		return nil, v.err
	}
	var changes []scheduler.Change
	for _, id := range others(v.streams, own.id, after) {
		for c, row := range s.changes.from(key{n: id, m: after[id] + 1}) {
			if c.n != id {
				break
			}
			changes = append(changes, scheduler.Change{Stream: c.n, N: c.m, Data: row.data})
		}
		if !v.streams.has(key{n: id}) && !guard {
			changes = append(changes, scheduler.Change{Stream: id, N: scheduler.Ended})
		}
	}
	if len(changes) == 0 && own.next != nil && maps.Equal(*own.next, after) {
		own.read = here
		return nil, v.err
	}
	if guard && len(changes) > 0 {
		v.err = errOthers
		return nil, v.err
	}
	next := scheduler.Position{}
	maps.Copy(next, after)
	for _, c := range changes {
		next.Move(c)
	}
	own.next, own.read = &next, here
	return changes, v.err
}

// others are the streams of other nodes: those that are followed, also if they are not registered any more, and those
// that are new.
func others(streams table[stream], own int64, after scheduler.Position) []int64 {
	ids := slices.AppendSeq(make([]int64, 0, len(after)+1), maps.Keys(after))
	for k := range streams.all() {
		if _, followed := after[k.n]; !followed && k.n != own {
			ids = append(ids, k.n)
		}
	}
	slices.Sort(ids)
	return ids
}

// gone fails the view, because a change that this node has followed is missing. If its stream is missing too, both may
// have been removed long after their node died.
func (v *view) gone(after scheduler.Position) bool {
	lost, why := false, ""
	for id, n := range after {
		if n > 0 && !v.state.changes.has(key{n: id, m: n}) {
			lost = true
			if v.streams.has(key{n: id}) {
				why = "changes of another node that this node had followed are gone"
			}
		}
	}
	if lost {
		v.store.lose(why)
		v.err = errWentBack
	}
	return lost
}
