package scheduler

import (
	"context"
	"encoding/json"
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// Trigger makes a job of a definition now, whatever its schedule says, and returns its id. A payload that is not nil
// takes the place of the definition's.
func (s *Scheduler) Trigger(
	ctx context.Context, c Caller, id string, payload json.RawMessage,
) (run lessor.JobID, err error) {
	if _, err := s.schemas(); err != nil {
		return run, err
	}
	given, err := rules.Payload(payload, "payload", s.cfg.Jobs.PayloadLimit)
	if err != nil {
		return run, err
	}
	_, err = s.oneDefinition(ctx, c, id, func(ctx context.Context, p *pass, d *rules.Definition) error {
		spec := p.tickSpec(d, 0)
		if payload != nil {
			spec.Payload = given
			if err := s.handlers.Load().check(d.Handler, given, ""); err != nil {
				return err
			}
		}
		spec.Actor, spec.TraceID, run = c.Actor, c.traceOf(spec.ID), spec.ID
		p.audit(c, "definition.triggered", "definition/"+id, nil, map[string]any{"runId": run})
		return p.store(ctx, []*rules.Spec{spec})
	})
	return run, err
}

// Backfill makes the jobs of past ticks that have none, and returns how many it made.
func (s *Scheduler) Backfill(
	ctx context.Context, c Caller, id string, from, to lessor.Instant,
) (created int, err error) {
	_, err = s.oneDefinition(ctx, c, id, func(ctx context.Context, p *pass, d *rules.Definition) error {
		ticks, err := rules.Backfill(ticker(d), from, to, p.now)
		if err != nil {
			return err
		}
		known, err := p.rowsOf(ctx, d, ticks)
		if err != nil {
			return err
		}
		rows, replaced := rules.Refill(d, ticks, known)
		var specs []*rules.Spec
		for _, rows := range [][]rules.TickRow{rows, replaced} {
			for i := range rows {
				spec := p.tickSpec(d, rows[i].At)
				spec.Actor, rows[i].Run = c.Actor, spec.ID
				specs = append(specs, spec)
			}
		}
		created = len(specs)
		p.audit(c, "definition.backfilled", "definition/"+id, nil, map[string]any{
			"from": from, "to": to, "created": created,
		})
		if err := p.store(ctx, specs); err != nil {
			return err
		}
		if err := p.tx.ReplaceTicks(ctx, replaced); err != nil {
			return err
		}
		return p.tx.SaveTicks(ctx, rows)
	})
	return created, err
}

// rowsOf returns the rows of a definition's ticks. An earlier schedule may have left far more rows between them.
func (p *pass) rowsOf(
	ctx context.Context, d *rules.Definition, ticks []lessor.Instant,
) (rows []rules.TickRow, err error) {
	for len(ticks) > 0 {
		q := TickQuery{
			Definition: d.ID, Tenant: d.Tenant, From: ticks[0], To: ticks[len(ticks)-1], Limit: pageLimit,
		}
		page, err := p.tx.TickList(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			if i, is := slices.BinarySearch(ticks, r.At); is {
				rows, ticks = append(rows, r), ticks[i+1:]
			}
		}
		if len(page) < q.Limit {
			break
		}
		i, _ := slices.BinarySearch(ticks, page[len(page)-1].At)
		ticks = ticks[i:]
	}
	return rows, nil
}

// NextTicks returns the next ticks of a definition, also of one that is paused.
func (s *Scheduler) NextTicks(ctx context.Context, c Caller, id string, count int) ([]lessor.Instant, error) {
	if err := rules.CheckCount(count); err != nil {
		return nil, err
	}
	d, err := s.definition(ctx, c, id)
	if err != nil {
		return nil, err
	}
	var now lessor.Instant
	if err := s.read(ctx, c, func(l *loop) { now = l.fold.Serving.LastBeat }); err != nil {
		return nil, err
	}
	return rules.Preview(ticker(d), now, count), nil
}

// Ticks lists what became of a definition's ticks, oldest first, and the cursor of the next page ("" at the end).
func (s *Scheduler) Ticks(
	ctx context.Context, c Caller, id string, f lessor.TickFilter,
) ([]lessor.Tick, string, error) {
	after, err := rules.CheckTicks(f)
	if err != nil {
		return nil, "", err
	}
	d, err := s.definition(ctx, c, id)
	if err != nil {
		return nil, "", err
	}
	q := TickQuery{Definition: id, Tenant: d.Tenant, From: f.From, To: f.To, After: after, Limit: f.Limit + 1}
	page, next, err := pageOf(ctx, s, "list ticks", f.Limit, func(r rules.TickRow) string { return r.At.String() },
		func(v View) ([]rules.TickRow, error) { return v.TickList(ctx, q) })
	return each(page, func(r rules.TickRow) lessor.Tick { return rules.ShowTick(&r) }), next, err
}
