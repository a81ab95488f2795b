package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// pass is one transaction on its way: what was loaded, and what is to be saved.
type pass struct {
	l       *loop
	tx      Tx
	now     lessor.Instant
	serving rules.Serving
	stats   Stats

	leases    map[lessor.LeaseID]*rules.Held // loaded for change; nil value = gone
	suspects  []lessor.LeaseID               // of these, those that may be over
	sweptFor  time.Duration                  // since the sweep before
	late      late
	changed   map[lessor.LeaseID]*rules.Held
	ended     map[lessor.LeaseID]LeaseEnd // in this pass
	moves     []Move
	notes     []rules.Note
	reports   []rules.Report
	journals  map[lessor.JobID]*journal // of the jobs that appends name
	entries   []rules.Entry             // to append
	output    output
	reported  map[lessor.JobID]*rules.Report // what jobs that are released had reported before
	events    []lessor.StreamEvent
	toWake    []lessor.JobID // jobs whose waiting callers can be answered after the commit
	called    []fold.Called  // leases whose workers are notified after the commit
	verdicts  []verdict
	alerts    []lessor.Alert
	failed    []failedJob
	audited   []lessor.Audited
	following following
}

// begin runs fn inside a transaction and publishes what it did to the fold.
func (p *pass) begin(ctx context.Context, tx Tx, fn func(p *pass) error) error {
	p.tx = tx
	p.readClock()
	p.changed, p.ended = map[lessor.LeaseID]*rules.Held{}, map[lessor.LeaseID]LeaseEnd{}
	p.leases = map[lessor.LeaseID]*rules.Held{}
	shared := p.l.store.Shared()
	if shared {
		p.l.fold.Record(tx.SoleNode())
	}
	p.l.notify() // of what is committed
	err := fn(p)
	if p.called = p.l.fold.TakeCalled(); err != nil {
		return err
	}
	if err := tx.SaveAudit(ctx, p.audited); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if err := p.sendEvents(ctx); err != nil {
		return fmt.Errorf("publish events: %w", err)
	}
	if !shared {
		return nil
	}
	return tx.Publish(ctx, p.l.fold.Recorded())
}

// readClock reads the store's clock again: after every wait for a lock, because time has passed.
func (p *pass) readClock() { p.now, p.serving = p.tx.Now(), p.tx.Serving() }

// served returns the serving row with this pass as its last sign of service.
func (p *pass) served() rules.Serving {
	p.serving.LastBeat = p.now
	return p.serving
}

// follow brings the fold up to date after rows were locked, so that no decision uses their earlier state.
// It reads the clock behind the changes, so that no decision bears a time before what it builds on.
func (p *pass) follow(ctx context.Context) error {
	err := p.l.follow(ctx, p.tx)
	p.readClock()
	return err
}

// gate keeps other nodes from granting, and brings the fold up to date with all they granted.
func (p *pass) gate(ctx context.Context) error {
	if err := p.tx.Gate(ctx); err != nil {
		return err
	}
	return p.follow(ctx)
}

// steps is the work of the hot calls, in the order in which all nodes lock. Ends come before grants, so that what they
// free is handed out in the same commit.
var steps = []struct {
	verb string
	do   func(ctx context.Context, p *pass, w *work) error
}{
	{"submit", func(ctx context.Context, p *pass, w *work) error { return p.submit(ctx, w.submits) }},
	{"load leases", func(ctx context.Context, p *pass, w *work) error { return p.loadLeases(ctx, w) }},
	{"load journals", func(ctx context.Context, p *pass, w *work) error { return p.loadJournals(ctx, w.beats) }},
	{"heartbeat", func(_ context.Context, p *pass, w *work) error { p.beat(w.beats); return nil }},
	{"end leases", func(ctx context.Context, p *pass, w *work) error { return p.end(ctx, w.ends) }},
	{"expire leases", func(ctx context.Context, p *pass, _ *work) error { return p.expire(ctx) }},
	{"deliver messages", func(ctx context.Context, p *pass, w *work) error { return p.deliver(ctx, w.beats) }},
	{"save leases", func(ctx context.Context, p *pass, _ *work) error { return p.save(ctx) }},
	{"promote", func(ctx context.Context, p *pass, _ *work) error { return p.promote(ctx) }},
	{"judge circuits", func(ctx context.Context, p *pass, _ *work) error { return p.judge(ctx) }},
	{"grant", func(ctx context.Context, p *pass, w *work) error { return p.grant(ctx, w.requests) }},
}

// run takes the steps.
func (p *pass) run(ctx context.Context, w *work) error {
	for _, step := range steps {
		if err := step.do(ctx, p, w); err != nil {
			return fmt.Errorf("%s: %w", step.verb, err)
		}
	}
	return nil
}

// loadLeases reads, once for the whole batch, the leases that its calls name and those that may be over.
func (p *pass) loadLeases(ctx context.Context, w *work) error {
	suspects, err := p.findSuspects(ctx)
	if err != nil {
		return err
	}
	ids := suspects
	for _, c := range w.beats {
		for i := range c.beats {
			ids = append(ids, c.beats[i].id)
		}
	}
	for _, c := range w.ends {
		for i := range c.ends {
			ids = append(ids, c.ends[i].id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	leases, err := p.tx.Leases(ctx, ids)
	if err != nil {
		return err
	}
	p.leases, p.suspects = leases, suspects
	p.changed = make(map[lessor.LeaseID]*rules.Held, len(w.beats))
	p.ended = make(map[lessor.LeaseID]LeaseEnd, len(w.ends))
	p.moves, p.stats.Ended = slices.Grow(p.moves, len(w.ends)), slices.Grow(p.stats.Ended, len(w.ends))
	if err := p.follow(ctx); err != nil {
		return err
	}
	var unknown []rules.LaneID
	for _, h := range leases {
		unknown = p.l.fold.Unknown(unknown, h.Turn.Lane)
	}
	return p.l.learnLanes(ctx, p.tx, unknown)
}

// save writes what beats and ends decided.
func (p *pass) save(ctx context.Context) error {
	if len(p.changed) > 0 {
		held := slices.AppendSeq(make([]*rules.Held, 0, len(p.changed)), maps.Values(p.changed))
		if err := p.tx.SaveLeases(ctx, held); err != nil {
			return err
		}
	}
	if err := p.tx.AppendEntries(ctx, p.entries); err != nil {
		return err
	}
	if err := p.saveOutput(ctx); err != nil {
		return err
	}
	return p.flush(ctx)
}

// flush writes the moves, reports and notes decided so far, so that what follows in this pass builds on them.
func (p *pass) flush(ctx context.Context) error {
	if len(p.reports) > 0 {
		if err := p.tx.SaveReports(ctx, p.reports); err != nil {
			return err
		}
		p.reports = nil
	}
	moves, notes := p.moves, p.notes
	if len(moves)+len(notes) == 0 {
		return nil
	}
	p.moves, p.notes = nil, nil
	p.failures(moves)
	if err := p.forget(ctx, moves); err != nil {
		return err
	}
	for i := range moves {
		switch m := &moves[i]; {
		case m.Done != nil:
			p.toWake = append(p.toWake, m.Done.Attempt.Turn.Job)
		case m.From == rules.Leased: // readers of its output wait for the end of the attempt
			p.toWake = append(p.toWake, m.Held.Turn.Job)
		}
	}
	if err := p.tx.Move(ctx, moves); err != nil {
		return err
	}
	return p.tx.Note(ctx, notes)
}
