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

// clockMillis is the store's clock: that of the database, in milliseconds.
const clockMillis = "floor(extract(epoch from clock_timestamp()) * 1000)::bigint"

// clockNow reads the clock and the serving row. It runs behind the statements that wait for locks: a reading from
// before the waiting would be out of date.
var clockNow = wire.SQL("select " + clockMillis + ", last_beat, since, brake_until, lapsed_at, fence, " + timeline +
	" from serving where id")

// readClock adds a reading of the clock to the next round trip.
func (v *view) readClock() {
	v.conn.Add(wire.Step{Verb: "read the clock", Stmt: clockNow, Each: func(r *wire.Row) error {
		now, row := r.Instant(), readServing(r)
		if v.store.differs(r.Text()) {
			v.err = errWentBack
			return nil
		}
		v.now, v.row, v.serving = now, row, row
		if v.live {
			v.store.reckoned.note(v.now, time.Now())
			v.serving = rules.Serve(v.row, rules.ClockReading{}, rules.ClockReading{Wall: v.now})
		}
		if v.saved != nil {
			v.serving = *v.saved
			v.serving.LastBeat = v.now
		}
		return nil
	}})
}

func readServing(r *wire.Row) rules.Serving {
	return rules.Serving{
		LastBeat: r.Instant(), Since: r.Instant(), BrakeUntil: r.Instant(), LapsedAt: r.Instant(), Fence: r.Int(),
	}
}

// saveServing changes the row as it was read. It fails if another node has moved the floor meanwhile. Only Serve notes
// that a node served.
var saveServing = wire.SQL("with saved as (update serving set since = $1::bigint, brake_until = $2::bigint," +
	" lapsed_at = $3::bigint" +
	" where id and since = $4::bigint and brake_until = $5::bigint and lapsed_at = $6::bigint returning 1)" +
	" select 1 / count(*) from saved")

// SaveServing implements scheduler.Tx. The row is written just before the commit, so that no node's Serve waits long.
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

// putServing adds the row that SaveServing was given to the last round trip.
func (t *tx) putServing() {
	if t.saved == nil {
		return
	}
	s, base := t.saved, t.base
	t.conn.Add(wire.Step{Verb: "save serving", Stmt: saveServing, Guard: scheduler.ErrAgain},
		wire.Instant(s.Since), wire.Instant(s.BrakeUntil), wire.Instant(s.LapsedAt),
		wire.Instant(base.Since), wire.Instant(base.BrakeUntil), wire.Instant(base.LapsedAt))
}

// clockSteps finds steps of the database's clock. It compares the progress of that clock between two readings with the
// progress of our own monotonic clock.
type clockSteps struct {
	mu    sync.Mutex
	start time.Time
	last  reading
}

// reading is an instant of the database's clock, read at some moment between the sending and the answer.
type reading struct {
	at           lessor.Instant
	sent, answer time.Duration
}

// stepped reports whether the clock made a step since the last reading that the round trips cannot explain. It keeps
// the new reading.
func (s *clockSteps) stepped(r reading) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last
	s.last = r
	if last == (reading{}) {
		return false
	}
	progress := r.at.Sub(last.at)
	ours := min(max(progress, r.sent-last.answer), r.answer-last.sent) // of what is possible, the nearest
	was, is := rules.ClockReading{Wall: last.at, Mono: 1}, rules.ClockReading{Wall: r.at, Mono: 1 + ours}
	return rules.Serve(rules.Serving{LastBeat: r.at}, was, is).Since != 0
}

func (s *clockSteps) since() time.Duration { return time.Since(s.start) }
