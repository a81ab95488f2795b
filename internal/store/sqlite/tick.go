package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	tickColumns  = "definition, tick_at, tenant, outcome, reason, run, from_at, to_at, count"
	selectTick   = "select " + tickColumns + " from tick"
	decidedTicks = "select tick_at from tick where definition = ? and tenant = ? and tick_at between +? and +? order by tick_at limit +?"
	replaceTick  = "replace into tick (" + tickColumns + ") values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)

func bindTick(a *args, t *rules.TickRow) {
	a.text(t.Definition)
	a.instant(t.At)
	a.id(t.Tenant.UUID)
	a.text(string(t.Outcome))
	a.text(t.Reason)
	a.idOrNull(t.Run.UUID)
	a.instant(t.From)
	a.instant(t.To)
	a.int(t.Count)
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
func (t *tx) SaveTicks(_ context.Context, rows []rules.TickRow) error {
	return t.do("save ticks", func() error {
		return t.w.tick.insert(len(rows), func(i int, a *args) { bindTick(a, &rows[i]) })
	})
}

// ReplaceTicks implements scheduler.KernelTx.
func (t *tx) ReplaceTicks(_ context.Context, rows []rules.TickRow) error {
	return t.do("replace ticks", func() error {
		for i := range rows {
			if err := query(t.conn, replaceTick, func(a *args) { bindTick(a, &rows[i]) }, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// DecidedTicks implements scheduler.KernelTx.
func (t *tx) DecidedTicks(ctx context.Context, ds []*rules.Definition, to lessor.Instant, limit int) (map[string][]lessor.Instant, error) {
	decided := map[string][]lessor.Instant{}
	for _, d := range ds {
		err := query(t.conn, decidedTicks, func(a *args) {
			a.text(d.ID)
			a.id(d.Tenant.UUID)
			a.instant(d.NextTick)
			a.instant(to)
			a.int(int64(max(0, limit)))
		}, func(r *row) error {
			decided[d.ID] = append(decided[d.ID], r.instant())
			return nil
		})
		if err != nil {
			return nil, readFault(ctx, "read decided ticks", err)
		}
	}
	return decided, nil
}

// TickList implements scheduler.KernelView.
func (v *view) TickList(ctx context.Context, q scheduler.TickQuery) (ticks []rules.TickRow, err error) {
	w := &where{}
	w.and("definition = ?", func(a *args) { a.text(q.Definition) })
	w.and("tenant = ?", func(a *args) { a.id(q.Tenant.UUID) })
	w.and("tick_at >= +?", func(a *args) { a.instant(max(q.From, q.After+1)) })
	if q.To != 0 {
		w.and("tick_at <= +?", func(a *args) { a.instant(q.To) })
	}
	err = v.page(selectTick, w, "tick_at", q.Limit, func(r *row) { ticks = append(ticks, readTick(r)) })
	return ticks, readFault(ctx, "list ticks", err)
}

// CircuitTicks implements scheduler.KernelView.
func (v *view) CircuitTicks(ctx context.Context, q scheduler.CircuitTickQuery) (ticks []rules.TickRow, err error) {
	w := &where{}
	w.and("outcome = '"+string(lessor.TickCircuitOpen)+"'", nil)
	if q.Definition != "" {
		w.and("definition = ?", func(a *args) { a.text(q.Definition) })
	}
	if q.Tenant != nil {
		w.and("tenant = ?", func(a *args) { a.id(q.Tenant.UUID) })
	}
	if q.Run != nil {
		w.and("run = ?", func(a *args) { a.id(q.Run.UUID) })
	}
	w.and("run < +?", func(a *args) { bindBefore(a, q.After) })
	err = v.page(selectTick, w, "run desc", q.Limit, func(r *row) { ticks = append(ticks, readTick(r)) })
	return ticks, readFault(ctx, "list ticks under open circuits", err)
}
