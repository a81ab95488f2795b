package memory

import (
	"context"
	"fmt"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// Serve implements scheduler.Store. It fails where the commit of a heartbeat would.
func (s *Store) Serve(ctx context.Context, anew bool) (rules.Serving, error) {
	if err := s.asServer(ctx, "serve"); err != nil {
		return rules.Serving{}, err
	}
	defer s.mu.Unlock()
	d := s.db
	if d.Stepper != nil {
		switch fate := d.Stepper.Fate(s.node); fate {
		case Durable:
		case Full:
			return rules.Serving{}, fmt.Errorf("serve: %w", scheduler.ErrFull)
		default:
			return rules.Serving{}, fmt.Errorf("serve: %w: the commit failed", scheduler.ErrUnreachable)
		}
	}
	lost := s.origin.lost
	s.checkOrigin()
	now := d.Clock()
	if s.stepped(now) {
		anew = true
	}
	d.latest = max(d.latest, d.serving.LastBeat, now)
	if s.begins() {
		d.serving = rules.BeginToServe(d.serving, now)
	} else {
		d.serving = rules.Serve(d.serving, rules.ClockReading{}, rules.ClockReading{Wall: now})
	}
	if anew {
		d.serving.LastBeat, d.serving.Since = now, now
	}
	serving := d.serving
	serving.LastBeat = now
	if s.origin.lost {
		if !lost {
			return serving, errWentBack
		}
	} else {
		s.origin.clock, s.origin.clockRead = now, d.Mono(s.node)
		s.origin.fence = max(s.origin.fence, d.serving.Fence, int64(d.latest))
	}
	s.served, s.sole = now, true
	for k, r := range d.streams.all() {
		s.sole = s.sole && (k.n == s.stream.id || r.seenAt <= now.Add(-deadAfter))
	}
	s.tidy(now)
	return serving, nil
}

// begins reports whether the node begins to serve with this note, and keeps its moment.
func (s *Store) begins() bool {
	last := s.notedAt
	s.notedAt = s.db.Mono(s.node) + 1 // never zero
	return last == 0 || s.notedAt-last > rules.ServedFor
}

// stepped reports whether the database's clock made a step against this node's since the last reading.
func (s *Store) stepped(now lessor.Instant) bool {
	last := s.clock
	s.clock = rules.ClockReading{Wall: now, Mono: s.db.Mono(s.node) + 1} // never zero
	return last != (rules.ClockReading{}) && rules.Serve(rules.Serving{LastBeat: now}, last, s.clock).Since != 0
}

// SaveServing implements scheduler.Tx. The row is written by the commit.
func (t *tx) SaveServing(_ context.Context, s rules.Serving) error {
	if t.err != nil {
		return t.err
	}
	if t.saved == nil {
		t.base = t.row
	}
	t.serving, t.saved = s, &s
	return nil
}

// SoleNode implements scheduler.Tx.
func (t *tx) SoleNode() bool {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	return t.store.sole
}

// changeAt is the newest change of a stream at an instant.
type changeAt struct {
	stream, n int64
	at        lessor.Instant
}

// tidy removes changes that no node needs any more and the streams of nodes that are gone, if it is time to. The last
// change of a stream stays (see store/postgres/tidy.go).
func (s *Store) tidy(now lessor.Instant) {
	if now.Sub(s.tidied).Abs() < tidyEvery {
		return
	}
	s.tidied = now
	d := s.db
	d.noteStream(s.stream.id, func(r *stream) { r.seenAt = now })
	for len(s.newestAt) > 0 && (now.Sub(s.newestAt[0].at).Abs() > keepFor || s.newestAt[0].stream != s.stream.id) {
		if m := s.newestAt[0]; m.stream == s.stream.id {
			d.trim(m.stream, m.n)
		}
		s.newestAt = s.newestAt[1:]
	}
	s.newestAt = append(s.newestAt, changeAt{s.stream.id, s.stream.n, now})
	for k, r := range d.streams.all() {
		if r.seenAt >= now.Add(-deadAfter) {
			continue
		}
		for c := range d.state.changes.back(key{n: k.n + 1}) {
			if c.n == k.n {
				d.trim(k.n, c.m)
			}
			break
		}
		d.streams.drop(k)
		d.version++
	}
}

// trim removes the changes of a stream before n.
func (d *Database) trim(stream, n int64) {
	state := d.state.changes
	for k := range state.from(key{n: stream}) {
		if k.n != stream || k.m >= n {
			break
		}
		d.state.changes.drop(k)
		d.version++
	}
}
