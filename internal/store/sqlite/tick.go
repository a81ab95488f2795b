package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

var (
	tickColumns = row.Columns(row.Tick)
	selectTick  = "select " + tickColumns + " from tick"
	replaceTick = insertOne("replace into tick", tickColumns)
)

const decidedTicks = "select tick_at from tick" +
	" where definition = ? and tenant = ? and tick_at between +? and +? order by tick_at limit +?"

// SaveTicks implements scheduler.Tx. A tick that has a row already is scheduler.ErrBadCall.
func (t *tx) SaveTicks(_ context.Context, ticks []rules.TickRow) error {
	return insert(t, "save ticks", &t.w.tick, ticks, row.Tick)
}

// ReplaceTicks implements scheduler.Tx.
func (t *tx) ReplaceTicks(_ context.Context, ticks []rules.TickRow) error {
	return t.run("replace ticks", replaceTick, len(ticks), func(i int, a *args) { row.Tick(row.Write(a), &ticks[i]) })
}

// DecidedTicks implements scheduler.Tx.
func (t *tx) DecidedTicks(
	ctx context.Context, ds []*rules.Definition, to lessor.Instant, limit int,
) (map[string][]lessor.Instant, error) {
	decided := map[string][]lessor.Instant{}
	for _, d := range ds {
		err := query(t.conn, decidedTicks, func(a *args) {
			a.Text(d.ID)
			a.ID(d.Tenant.UUID)
			a.instant(d.NextTick)
			a.instant(to)
			a.limit(limit)
		}, func(r *result) error {
			decided[d.ID] = append(decided[d.ID], r.instant())
			return nil
		})
		if err != nil {
			return nil, readFault(ctx, "read decided ticks", err)
		}
	}
	return decided, nil
}

// TickList implements scheduler.View.
func (v *view) TickList(ctx context.Context, q scheduler.TickQuery) ([]rules.TickRow, error) {
	w := &where{}
	w.and("definition = ?", func(a *args) { a.Text(q.Definition) })
	w.and("tenant = ?", func(a *args) { a.ID(q.Tenant.UUID) })
	w.and("tick_at >= +?", func(a *args) { a.instant(max(q.From, q.After+1)) })
	if q.To != 0 {
		w.and("tick_at <= +?", func(a *args) { a.instant(q.To) })
	}
	ticks, err := page(v, selectTick, w, "tick_at", q.Limit, row.Tick)
	return ticks, readFault(ctx, "list ticks", err)
}

// CircuitTicks implements scheduler.View.
func (v *view) CircuitTicks(ctx context.Context, q scheduler.CircuitTickQuery) ([]rules.TickRow, error) {
	w := &where{}
	w.and("outcome = '"+string(lessor.TickCircuitOpen)+"'", nil)
	if q.Definition != "" {
		w.and("definition = ?", func(a *args) { a.Text(q.Definition) })
	}
	if q.Tenant != nil {
		w.and("tenant = ?", func(a *args) { a.ID(q.Tenant.UUID) })
	}
	if q.Run != nil {
		w.and("run = ?", func(a *args) { a.ID(q.Run.UUID) })
	}
	w.and("run < +?", func(a *args) { bindBefore(a, q.After) })
	ticks, err := page(v, selectTick, w, "run desc", q.Limit, row.Tick)
	return ticks, readFault(ctx, "list ticks under open circuits", err)
}
