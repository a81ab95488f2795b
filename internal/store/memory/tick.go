package memory

import (
	"context"
	"fmt"
	"math"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func tickKey(t *rules.TickRow) key { return key{text: t.Definition, id: t.Tenant.UUID, n: int64(t.At)} }

// SaveTicks implements scheduler.Tx.
func (t *tx) SaveTicks(_ context.Context, rows []rules.TickRow) error {
	return t.do("save ticks", func() error {
		for _, row := range rows {
			k := tickKey(&row)
			if err := t.acquire(lock{"tick", k}); err != nil {
				return err
			}
			if t.state.ticks.has(k) {
				return fmt.Errorf("%w: tick %v of %s has a row", scheduler.ErrBadCall, row.At, row.Definition)
			}
			t.write(func(s *tables) { s.ticks.put(k, row) })
		}
		return nil
	})
}

// ReplaceTicks implements scheduler.Tx.
func (t *tx) ReplaceTicks(_ context.Context, rows []rules.TickRow) error {
	return save(t, "replace ticks", "tick", slices.Clone(rows), tickKey,
		func(s *tables, row *rules.TickRow) { s.ticks.put(tickKey(row), *row) })
}

// DecidedTicks implements scheduler.Tx.
func (t *tx) DecidedTicks(
	_ context.Context, ds []*rules.Definition, to lessor.Instant, limit int,
) (map[string][]lessor.Instant, error) {
	decided := map[string][]lessor.Instant{}
	s := t.read("read decided ticks")
	for _, d := range ds {
		ticks := s.ticksOf(scheduler.TickQuery{
			Definition: d.ID, Tenant: d.Tenant, From: d.NextTick, To: to, Limit: limit,
		})
		for _, row := range ticks {
			decided[d.ID] = append(decided[d.ID], row.At)
		}
	}
	return decided, t.err
}

// TickList implements scheduler.View.
func (v *view) TickList(_ context.Context, q scheduler.TickQuery) ([]rules.TickRow, error) {
	s := v.read("list ticks")
	if q.After != 0 {
		q.From = max(q.From, q.After+1)
	}
	if q.To == 0 {
		q.To = math.MaxInt64
	}
	return s.ticksOf(q), v.err
}

// ticksOf returns ticks of one definition between two instants.
func (s *tables) ticksOf(q scheduler.TickQuery) (ticks []rules.TickRow) {
	for k, row := range s.ticks.from(key{text: q.Definition, id: q.Tenant.UUID, n: int64(q.From)}) {
		if k.text != q.Definition || k.id != q.Tenant.UUID || row.At > q.To || len(ticks) >= q.Limit {
			break
		}
		ticks = append(ticks, row)
	}
	return ticks
}

// CircuitTicks implements scheduler.View.
func (v *view) CircuitTicks(_ context.Context, q scheduler.CircuitTickQuery) (ticks []rules.TickRow, err error) {
	s := v.read("list ticks under open circuits")
	bound := before(q.After)
	for _, row := range s.ticks.all() {
		if row.Outcome == lessor.TickCircuitOpen && (q.Definition == "" || row.Definition == q.Definition) &&
			is(q.Tenant, row.Tenant) && is(q.Run, row.Run) && (key{id: row.Run.UUID}).compare(bound) < 0 {
			ticks = append(ticks, row)
		}
	}
	slices.SortFunc(ticks, func(a, b rules.TickRow) int {
		return key{id: b.Run.UUID}.compare(key{id: a.Run.UUID})
	})
	return ticks[:min(len(ticks), max(q.Limit, 0))], v.err
}
