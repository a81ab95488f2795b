package scheduler

import (
	"context"
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// tickBatch bounds the definitions whose ticks one transaction decides about.
const tickBatch = 100

// maxOpenRuns bounds the open jobs of one definition that are counted.
const maxOpenRuns = 10_000

// maxDecided bounds the ticks with a row that a definition may pass over in one transaction: on a clock that was ahead
// they were decided before their time.
const maxDecided = 10_000

// tick decides about the ticks that are due. With several nodes, only one at a time holds the lock of a definition, so
// no leader is needed.
func (l *loop) tick(ctx context.Context) error {
	_, err := l.transact(ctx, 0, func(p *pass) error { return p.tick(ctx) })
	return err
}

func (l *loop) tickDue() bool {
	return l.fold.TickAt != 0 && l.fold.TickAt <= l.fold.Serving.LastBeat
}

func (p *pass) tick(ctx context.Context) error {
	due, err := p.tx.DueDefinitions(ctx, p.now, tickBatch)
	if err != nil {
		return err
	}
	if err := p.follow(ctx); err != nil {
		return err
	}
	if err := p.fire(ctx, due); err != nil {
		return err
	}
	next, err := p.tx.NextTick(ctx)
	if len(due) == 0 && next != 0 {
		next = max(next, p.now.Add(p.l.pace.Serve)) // another node has locked it
	}
	p.l.fold.TickAt = next
	return err
}

// fire writes the outcomes of the due ticks of definitions, and makes their jobs.
func (p *pass) fire(ctx context.Context, ds []*rules.Definition) error {
	if len(ds) == 0 {
		return nil
	}
	open, err := p.tx.OpenRuns(ctx, ds, maxOpenRuns)
	if err != nil {
		return err
	}
	decided, err := p.tx.DecidedTicks(ctx, ds, p.now, maxDecided)
	if err != nil {
		return err
	}
	var f firing
	for _, d := range ds {
		if err := p.decideTicks(ctx, &f, d, open[d.ID], decided[d.ID]); err != nil {
			return err
		}
	}
	if len(f.cancel) > 0 {
		all := func(*rules.Standing) bool { return true }
		if err := p.cancelOpen(ctx, rules.ActorScheduler, f.cancel, all); err != nil {
			return err
		}
	}
	if err := p.store(ctx, f.specs); err != nil {
		return err
	}
	if err := p.tx.SaveTicks(ctx, f.rows); err != nil {
		return err
	}
	for _, spec := range f.specs {
		p.l.expect(spec, p.now)
	}
	p.stats.Ticks = map[lessor.TickOutcome]int{}
	for i := range f.rows {
		p.stats.Ticks[f.rows[i].Outcome]++
	}
	return p.tx.SaveDefinitions(ctx, ds)
}

// firing is what the due ticks of definitions make: rows and jobs. cancel are the definitions whose open runs end.
type firing struct {
	rows   []rules.TickRow
	specs  []*rules.Spec
	cancel []*rules.Definition
}

// decideTicks decides the due ticks of one definition that have no row yet, and advances its clock.
func (p *pass) decideTicks(
	ctx context.Context, f *firing, d *rules.Definition, open []OpenRun, decided []lessor.Instant,
) error {
	now := p.now
	if len(decided) == maxDecided {
		now = decided[maxDecided-1] // the rest follow in the next
	}
	p.expectOpen(d, open)
	circuit := p.l.fold.Blocked(d.ID).Circuit
	plan := rules.Ticks(d, rules.Undecided(d, ticker(d), decided), &circuit, countOpen(open), now)
	if err := p.lateTicks(ctx, d, plan.Rows); err != nil {
		return err
	}
	if plan.Cancel {
		f.cancel = append(f.cancel, d)
	}
	for _, row := range plan.Rows {
		switch {
		case row.Ran():
			spec := p.tickSpec(d, row.At)
			row.Run = spec.ID
			f.specs = append(f.specs, spec)
		case row.Outcome == lessor.TickCircuitOpen:
			row.Run = lessor.JobID{UUID: p.l.newUUID()}
		}
		f.rows = append(f.rows, row)
	}
	return nil
}

// expectOpen watches a job of a definition that was never granted. The node that made it may have died.
func (p *pass) expectOpen(d *rules.Definition, open []OpenRun) {
	i := slices.IndexFunc(open, func(r OpenRun) bool { return !r.Claimed })
	if i < 0 || slices.ContainsFunc(p.l.expected, func(e expected) bool { return e.job == open[i].Job }) {
		return
	}
	spec := rules.TickSpec(d, p.now)
	spec.ID = open[i].Job
	p.l.expect(spec, p.now)
}

func countOpen(runs []OpenRun) (open rules.OpenRuns) {
	for _, r := range runs {
		if r.Claimed {
			open.Others++
		} else {
			open.Waiting++
		}
	}
	return open
}

// tickSpec is the job of a tick, ready to be stored.
func (p *pass) tickSpec(d *rules.Definition, at lessor.Instant) *rules.Spec {
	spec := rules.TickSpec(d, at)
	spec.ID = lessor.JobID{UUID: p.l.newUUID()}
	spec.TraceID = traceOf(spec.ID)
	return spec
}
