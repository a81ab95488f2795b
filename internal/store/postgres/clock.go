package postgres

import (
	"context"
	"sync"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// The store's clock is the database's, in milliseconds. It is read in a statement behind those that wait for locks, together
// with the serving row: what was read before the waiting is out of date.
var lookAtClock = wire.SQL("select floor(extract(epoch from clock_timestamp()) * 1000)::bigint, last_beat, since, brake_until, lapsed_at, fence, " + timeline +
	" from serving where id")

// look adds a reading of the clock to the next round trip.
func (v *view) look() {
	v.conn.Add(wire.Step{Verb: "read the clock", Stmt: lookAtClock, Each: func(r *wire.Row) error {
		now, row := r.Instant(), readServing(r)
		if v.store.differs(r.Text()) {
			v.err = errWentBack
			return nil
		}
		v.now, v.row, v.serving = now, row, row
		if v.live {
			v.store.reckoned.note(v.now, time.Now())
			v.serving = rules.Serve(v.row, rules.Tick{}, rules.Tick{Wall: v.now})
		}
		if v.saved != nil {
			v.serving = *v.saved
			v.serving.LastBeat = v.now
		}
		return nil
	}})
}

func readServing(r *wire.Row) rules.Serving {
	return rules.Serving{LastBeat: r.Instant(), Since: r.Instant(), BrakeUntil: r.Instant(), LapsedAt: r.Instant(), Fence: r.Int()}
}

// saveServing changes the row that was read, or nothing: another node may have moved the floor meanwhile.
var saveServing = wire.SQL("with saved as (update serving set last_beat = greatest(last_beat, $1::bigint), since = $2::bigint," +
	" brake_until = $3::bigint, lapsed_at = $4::bigint" +
	" where id and since = $5::bigint and brake_until = $6::bigint and lapsed_at = $7::bigint returning 1)" +
	" select 1 / count(*) from saved")

// SaveServing implements scheduler.Tx. It is written last, just before the commit, so that no node's Serve waits for it long.
func (t *tx) SaveServing(_ context.Context, s rules.Serving) error {
	if t.err != nil {
		return t.err
	}
	if t.saved == nil {
		t.base = t.row
	}
	t.serving, t.saved, t.wrote = s, &s, true
	return nil
}

// putServing adds what SaveServing was told to the last round trip.
func (t *tx) putServing() {
	if t.saved == nil {
		return
	}
	s, base := t.saved, t.base
	t.conn.Add(wire.Step{Verb: "save serving", Stmt: saveServing, Guard: scheduler.ErrAgain},
		wire.Instant(s.LastBeat), wire.Instant(s.Since), wire.Instant(s.BrakeUntil), wire.Instant(s.LapsedAt),
		wire.Instant(base.Since), wire.Instant(base.BrakeUntil), wire.Instant(base.LapsedAt))
}

// steps finds steps of the database's clock: it compares the clock's progress between two readings with that of our own
// monotonic clock.
type steps struct {
	mu    sync.Mutex
	start time.Time
	last  reading
}

// reading is what the database's clock said at some moment between two readings of ours, the sending and the answer.
type reading struct {
	at           lessor.Instant
	sent, answer time.Duration
}

// stepped reports whether the clock made a step since the last reading that the time of the round trips cannot explain, and
// keeps the new reading.
func (s *steps) stepped(r reading) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last
	s.last = r
	if last == (reading{}) {
		return false
	}
	progress := r.at.Sub(last.at)
	ours := min(max(progress, r.sent-last.answer), r.answer-last.sent) // of what is possible, the nearest
	was, is := rules.Tick{Wall: last.at, Mono: 1}, rules.Tick{Wall: r.at, Mono: 1 + ours}
	return rules.Serve(rules.Serving{LastBeat: r.at}, was, is).Since != 0
}

func (s *steps) since() time.Duration { return time.Since(s.start) }
