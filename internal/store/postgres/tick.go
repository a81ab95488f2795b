package postgres

import (
	"context"
	"math"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	tickColumns = row.Columns(row.Tick)
	insertTicks = insertInto("tick", row.Tick)
	// replaceTicks also writes one that was purged meanwhile.
	replaceTicks = wire.Plural("insert into tick ("+tickColumns+") {rows}"+
		" on conflict (tenant, definition, tick_at) "+
		" do update set "+wire.Excluded(tickColumns), row.Kinds(row.Tick), tickColumns)
	// decidedTicks reads the first of each definition, by the key.
	decidedTicks = wire.SQL("select d.id, k.tick_at from (" + wire.Unnest("tui", "id, tenant, from_at") + ") d" +
		" cross join lateral (select tick_at from tick where tenant = d.tenant and definition = d.id" +
		" and tick_at between d.from_at and $4::bigint" +
		" order by tick_at limit $5::bigint) k order by d.id, k.tick_at")
	listTicks = wire.SQL("select " + tickColumns + " from tick where definition = $1::text and tenant = $2::uuid" +
		" and tick_at >= $3::bigint and tick_at <= $4::bigint order by tick_at limit $5::bigint")
	listCircuitTicks = variants("select "+tickColumns+" from tick where outcome = 'circuitOpen' and run < $4::uuid",
		" order by run desc limit $5::bigint",
		filter{"definition = ", "text"}, filter{"tenant = ", "uuid"}, filter{"run = ", "uuid"})
)

// SaveTicks implements scheduler.Tx. A tick that has a row already is scheduler.ErrBadCall.
func (t *tx) SaveTicks(_ context.Context, ticks []rules.TickRow) error {
	return save(t, "save ticks", insertTicks, ticks, row.Tick)
}

// ReplaceTicks implements scheduler.Tx.
func (t *tx) ReplaceTicks(_ context.Context, ticks []rules.TickRow) error {
	return save(t, "replace ticks", replaceTicks, ticks, row.Tick)
}

// DecidedTicks implements scheduler.Tx.
func (t *tx) DecidedTicks(
	_ context.Context, ds []*rules.Definition, to lessor.Instant, limit int,
) (map[string][]lessor.Instant, error) {
	decided := map[string][]lessor.Instant{}
	if len(ds) == 0 || t.err != nil {
		return decided, t.err
	}
	r := t.scratch.Reset()
	for _, d := range ds {
		r.Next()
		r.Text(d.ID)
		r.ID(d.Tenant.UUID)
		r.Instant(d.NextTick)
	}
	err := t.query("read decided ticks", decidedTicks, func(r *wire.Row) error {
		id := r.Text()
		decided[id] = append(decided[id], r.Instant())
		return nil
	}, append(r.Params(), wire.Instant(to), wire.Limit(limit))...)
	return decided, err
}

// TickList implements scheduler.View.
func (v *view) TickList(_ context.Context, q scheduler.TickQuery) (ticks []rules.TickRow, err error) {
	from, to := q.From, q.To
	if q.After != 0 {
		from = max(from, q.After+1)
	}
	if to == 0 {
		to = math.MaxInt64
	}
	err = v.query("list ticks", listTicks, collect(&ticks, row.Tick), wire.Text(q.Definition), wire.ID(q.Tenant.UUID),
		wire.Instant(from), wire.Instant(to), wire.Limit(q.Limit))
	return ticks, err
}

// CircuitTicks implements scheduler.View.
func (v *view) CircuitTicks(_ context.Context, q scheduler.CircuitTickQuery) ([]rules.TickRow, error) {
	return page(v, "list ticks under open circuits", listCircuitTicks,
		[][]byte{wire.TextOrNil(q.Definition), wire.IDOrNil(q.Tenant), wire.IDOrNil(q.Run)}, row.Tick,
		before(q.After), wire.Limit(q.Limit))
}
