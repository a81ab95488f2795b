package rules

import (
	"time"

	"lessor"
	"lessor/internal/cron"
)

// The bounds of one decision about a definition's ticks.
const (
	// onTime is how late a tick may be noticed and still count as fired in time: longer than a restart takes.
	onTime = 10 * time.Second
	// maxTickRows bounds the rows of one decision; the rest follow in the next.
	maxTickRows = 1000
	// maxCatchUp bounds the jobs that the policy "all" catches up.
	maxCatchUp = 1000
	// maxCounted bounds the ticks that are counted one by one.
	maxCounted = 1_000_000
)

// The reasons of ticks that were skipped.
const (
	TickSuperseded = "superseded" // a later tick was due as well, and catchUp is latest
	TickLate       = "late"       // catchUp is none
	TickOverLimit  = "catch_up_limit"
	TickOverlap    = "overlap" // a job of an earlier tick has not ended
)

// TickRow is what became of one tick, or of all ticks From..To that lay before the catch-up window.
type TickRow struct {
	Definition string
	Tenant     lessor.TenantID
	At         lessor.Instant
	Outcome    lessor.TickOutcome
	Reason     string
	Run        lessor.JobID // the job that it made, or the run that records an open circuit
	From, To   lessor.Instant
	Count      int64
}

// Ran reports whether the tick made a job.
func (r *TickRow) Ran() bool {
	return r.Outcome == lessor.TickFired || r.Outcome == lessor.TickCaughtUp
}

// OpenRuns counts the jobs of a definition that have not ended.
type OpenRuns struct {
	Waiting int // never granted
	Others  int
}

// Ticker returns the first tick after an instant, 0 if there is none.
type Ticker func(after lessor.Instant) lessor.Instant

// TickerOf returns the ticks of a valid definition.
func TickerOf(d *Definition, loc *time.Location) Ticker {
	if d.Schedule.Type == lessor.ScheduleInterval {
		return cron.Interval{Every: time.Duration(d.Schedule.Seconds) * time.Second, Anchor: d.Anchor}.Next
	}
	schedule, err := cron.Parse(d.Schedule.Cron, d.ID)
	if err != nil {
		return func(lessor.Instant) lessor.Instant { return 0 } // a newer version stored it
	}
	return func(after lessor.Instant) lessor.Instant {
		t := schedule.Next(after.Time(), loc)
		if t.IsZero() {
			return 0
		}
		return lessor.At(t)
	}
}

// setTickAfter sets the next tick of d to the first after an instant, or to none if it has no ticks.
func setTickAfter(d *Definition, next Ticker, after lessor.Instant) {
	d.NextTick, d.DueAt = 0, 0
	if d.Ticking() {
		d.setNextTick(next(after), next)
	}
}

func (d *Definition) setNextTick(tick lessor.Instant, next Ticker) {
	d.NextTick, d.DueAt = tick, 0
	if tick != 0 {
		d.DueAt = d.due(tick, next)
	}
}

// due is when a tick fires. Jitter delays it, but not to the next tick, which would have to wait for it.
func (d *Definition) due(tick lessor.Instant, next Ticker) lessor.Instant {
	most := d.Jitter
	if most == 0 {
		return tick
	}
	if following := next(tick); following != 0 {
		most = min(most, following.Sub(tick)-time.Millisecond)
	}
	return tick.Add(cron.Jitter(d.ID, tick, most))
}

// TickPlan is the decision about the due ticks of a definition.
type TickPlan struct {
	Rows   []TickRow
	Cancel bool // the jobs that were open before
}

// Ticks decides about the ticks of d that are due at now, in order, and sets the next tick of d. Each tick inside the
// catch-up window gets a row; all before it share one. A long list is cut, and d stays due.
func Ticks(d *Definition, next Ticker, circuit *Circuit, open OpenRuns, now lessor.Instant) TickPlan {
	var p TickPlan
	p.missed(d, next, now)
	due := d.dueTicks(next, now)
	for i, at := range due {
		if len(p.Rows) == maxTickRows {
			d.setNextTick(at, next)
			return p
		}
		row := TickRow{Definition: d.ID, Tenant: d.Tenant, At: at, Outcome: lessor.TickFired}
		if now.Sub(d.due(at, next)) > onTime {
			row.Outcome = lessor.TickCaughtUp
		}
		p.decide(d, row, len(due)-i, circuit.Blocks(now), &open)
		d.setNextTick(next(at), next)
	}
	return p
}

// missed counts the ticks before the window in one row. Every window has room for ticks that are noticed in time, and
// for their jitter.
func (p *TickPlan) missed(d *Definition, next Ticker, now lessor.Instant) {
	window := now.Add(-max(d.CatchUpWindow, onTime) - d.Jitter)
	if d.NextTick >= window {
		return
	}
	row := TickRow{Definition: d.ID, Tenant: d.Tenant, At: d.NextTick, Outcome: lessor.TickMissed, From: d.NextTick}
	if every := lessor.Instant(d.Schedule.Seconds * 1000); every > 0 {
		row.Count = int64((window - 1 - d.NextTick) / every)
		row.To = d.NextTick + lessor.Instant(row.Count)*every
		row.Count++
		d.setNextTick(next(row.To), next)
	} else {
		for t := d.NextTick; t != 0 && t < window && row.Count < maxCounted; t = next(t) {
			row.To = t
			row.Count++
		}
		d.setNextTick(next(row.To), next)
	}
	p.Rows = append(p.Rows, row)
}

// dueTicks returns the ticks that are due, from the next on.
func (d *Definition) dueTicks(next Ticker, now lessor.Instant) (due []lessor.Instant) {
	for t := d.NextTick; t != 0 && d.due(t, next) <= now; t = next(t) {
		due = append(due, t)
	}
	return due
}

// decide decides about one tick, whose row says whether it is in time. left counts the due ticks from this one on.
func (p *TickPlan) decide(d *Definition, row TickRow, left int, blocked bool, open *OpenRuns) {
	switch {
	case d.CatchUp == lessor.CatchUpLatest && left > 1:
		row.skip(TickSuperseded)
	case d.CatchUp == lessor.CatchUpNone && row.Outcome == lessor.TickCaughtUp:
		row.skip(TickLate)
	case d.CatchUp == lessor.CatchUpAll && left > maxCatchUp:
		row.skip(TickOverLimit)
	case blocked:
		row.Outcome = lessor.TickCircuitOpen
	case d.overlaps(*open):
		row.skip(TickOverlap)
	default:
		if d.Overlap == lessor.OverlapCancelPrevious && open.Waiting+open.Others > 0 {
			p.Cancel = true
		}
		open.Waiting++
	}
	p.Rows = append(p.Rows, row)
}

// Late returns the row of missed ticks, nil if there is none, and whether a tick fired in time.
func Late(rows []TickRow) (missed *TickRow, fired bool) {
	for i := range rows {
		switch rows[i].Outcome {
		case lessor.TickMissed:
			missed = &rows[i]
		case lessor.TickFired:
			fired = true
		}
	}
	return missed, fired
}

func (r *TickRow) skip(reason string) { r.Outcome, r.Reason = lessor.TickSkipped, reason }

// overlaps reports whether open jobs keep a tick from making another.
func (d *Definition) overlaps(open OpenRuns) bool {
	switch d.Overlap {
	case lessor.OverlapSkip:
		return open.Waiting+open.Others > 0
	case lessor.OverlapQueueOne:
		return open.Waiting > 0
	}
	return false
}

// TickSpec returns the job of a tick; at is 0 for a job that an operator triggered.
func TickSpec(d *Definition, at lessor.Instant) *Spec {
	return &Spec{
		Lane: Lane{
			Tenant: d.Tenant, Class: d.Class, Priority: d.Priority, Type: d.Handler, Units: d.Units, LockKey: d.LockKey,
			Definition: d.ID,
		},
		Payload: d.Payload, MaxRuntime: d.Timeout, MaxAttempts: d.MaxAttempts, BackoffFirst: d.BackoffFirst,
		BackoffMax: d.BackoffMax,
		TickAt:     at, Actor: ActorScheduler,
	}
}

// TickBackfill is the reason of ticks that an operator backfilled.
const TickBackfill = "backfill"

// Refill returns the rows of backfilled ticks: fresh ones for ticks without a row, and replacements for rows without a
// job.
func Refill(d *Definition, ticks []lessor.Instant, known []TickRow) (fresh, replaced []TickRow) {
	rows := map[lessor.Instant]TickRow{}
	for _, r := range known {
		rows[r.At] = r
	}
	for _, at := range ticks {
		row, was := rows[at]
		switch {
		case !was:
			fresh = append(fresh, TickRow{
				Definition: d.ID, Tenant: d.Tenant, At: at, Outcome: lessor.TickCaughtUp,
				Reason: TickBackfill,
			})
		case !row.Ran():
			row.Outcome, row.Reason = lessor.TickCaughtUp, TickBackfill
			replaced = append(replaced, row)
		}
	}
	return fresh, replaced
}

// ShowTick returns a tick as callers see it.
func ShowTick(r *TickRow) lessor.Tick {
	t := lessor.Tick{
		TickAt: r.At, Outcome: r.Outcome, Reason: optional(r.Reason), From: r.From, To: r.To,
		Count: max(1, r.Count),
	}
	if !r.Run.IsZero() {
		run := r.Run
		t.RunID = &run
	}
	return t
}

// Preview returns the next ticks after an instant, whether or not the definition is paused.
func Preview(next Ticker, after lessor.Instant, count int) []lessor.Instant {
	ticks := make([]lessor.Instant, 0, count)
	for t := next(after); t != 0 && len(ticks) < count; t = next(t) {
		ticks = append(ticks, t)
	}
	return ticks
}

// maxBackfill bounds the ticks of one backfill.
const maxBackfill = 1000

// Backfill returns the ticks from..to, both included. It refuses a range that is reversed, in the future or too long.
func Backfill(next Ticker, from, to, now lessor.Instant) ([]lessor.Instant, error) {
	var c check
	switch {
	case to < from:
		c.fail("to", "must not be before from (%s)", from)
	case to > now:
		c.fail("to", "must not be in the future; ticks to come fire by themselves")
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	var ticks []lessor.Instant
	for t := next(from - 1); t != 0 && t <= to; t = next(t) {
		if len(ticks) == maxBackfill {
			c.fail("to", "at most %d ticks at once; %s is the last that fits", maxBackfill, ticks[maxBackfill-1])
			return nil, c.err()
		}
		ticks = append(ticks, t)
	}
	return ticks, nil
}
