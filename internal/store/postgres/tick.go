package postgres

import (
	"context"
	"math"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	tickColumns = "definition, tick_at, tenant, outcome, reason, run, from_at, to_at, count"
	tickTypes   = "tiuttuiii"
)

var (
	insertTicks = insertAll("tick", tickColumns, tickTypes)
	// replaceTicks also writes one that was purged meanwhile.
	replaceTicks = plural("insert into tick ("+tickColumns+") {rows}"+
		" on conflict (tenant, definition, tick_at) do update set "+excluded(tickColumns), tickTypes, tickColumns)
	// decidedTicks reads the first of each definition, by the key.
	decidedTicks = sql("select d.id, k.tick_at from (" + unnestAs("tui", "id, tenant, from_at") + ") d" +
		" cross join lateral (select tick_at from tick where tenant = d.tenant and definition = d.id and tick_at between d.from_at and $4::bigint" +
		" order by tick_at limit $5::bigint) k order by d.id, k.tick_at")
	listTicks = sql("select " + tickColumns + " from tick where definition = $1::text and tenant = $2::uuid" +
		" and tick_at >= $3::bigint and tick_at <= $4::bigint order by tick_at limit $5::bigint")
	listCircuitTicks = variants("select "+tickColumns+" from tick where outcome = 'circuitOpen' and run < $4::uuid",
		" order by run desc limit $5::bigint", filter{"definition = ", "text"}, filter{"tenant = ", "uuid"}, filter{"run = ", "uuid"})
)

func bindTick(r *rows, t *rules.TickRow) {
	r.text(t.Definition)
	r.instant(t.At)
	r.id(t.Tenant.UUID)
	r.text(string(t.Outcome))
	r.text(t.Reason)
	r.idOrNull(t.Run.UUID)
	r.instant(t.From)
	r.instant(t.To)
	r.int(t.Count)
}

func readTick(r *row) rules.TickRow {
	return rules.TickRow{
		Definition: r.text(),
		At:         r.instant(),
		Tenant:     lessor.TenantID{UUID: r.id()},
		Outcome:    lessor.TickOutcome(r.text()),
		Reason:     r.text(),
		Run:        lessor.JobID{UUID: r.id()},
		From:       r.instant(),
		To:         r.instant(),
		Count:      r.int(),
	}
}

// SaveTicks implements scheduler.KernelTx. A tick that has a row already is scheduler.ErrBadCall.
func (t *tx) SaveTicks(_ context.Context, ticks []rules.TickRow) error {
	return t.putTicks("save ticks", insertTicks, ticks)
}

// ReplaceTicks implements scheduler.KernelTx.
func (t *tx) ReplaceTicks(_ context.Context, ticks []rules.TickRow) error {
	return t.putTicks("replace ticks", replaceTicks, ticks)
}

func (t *tx) putTicks(verb string, s *statement, ticks []rules.TickRow) error {
	if len(ticks) == 0 {
		return t.err
	}
	r := t.scratch.reset()
	for i := range ticks {
		r.row()
		bindTick(r, &ticks[i])
	}
	return t.write(verb, step{stmt: s, rows: r})
}

// DecidedTicks implements scheduler.KernelTx.
func (t *tx) DecidedTicks(_ context.Context, ds []*rules.Definition, to lessor.Instant, limit int) (map[string][]lessor.Instant, error) {
	decided := map[string][]lessor.Instant{}
	if len(ds) == 0 || t.err != nil {
		return decided, t.err
	}
	r := t.scratch.reset()
	for _, d := range ds {
		r.row()
		r.text(d.ID)
		r.id(d.Tenant.UUID)
		r.instant(d.NextTick)
	}
	err := t.query("read decided ticks", decidedTicks, func(r *row) error {
		id := r.text()
		decided[id] = append(decided[id], r.instant())
		return nil
	}, append(r.params(), instantOf(to), limitOf(limit))...)
	return decided, err
}

// TickList implements scheduler.KernelView.
func (v *view) TickList(_ context.Context, q scheduler.TickQuery) (ticks []rules.TickRow, err error) {
	from, to := q.From, q.To
	if q.After != 0 {
		from = max(from, q.After+1)
	}
	if to == 0 {
		to = math.MaxInt64
	}
	err = v.query("list ticks", listTicks, func(r *row) error {
		ticks = append(ticks, readTick(r))
		return nil
	}, textOf(q.Definition), uuidOf(q.Tenant.UUID), instantOf(from), instantOf(to), limitOf(q.Limit))
	return ticks, err
}

// CircuitTicks implements scheduler.KernelView.
func (v *view) CircuitTicks(_ context.Context, q scheduler.CircuitTickQuery) (ticks []rules.TickRow, err error) {
	err = v.page("list ticks under open circuits", listCircuitTicks, [][]byte{textOrNil(q.Definition), idOrNil(q.Tenant), idOrNil(q.Run)},
		func(r *row) { ticks = append(ticks, readTick(r)) }, before(q.After), limitOf(q.Limit))
	return ticks, err
}
