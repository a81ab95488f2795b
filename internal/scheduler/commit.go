package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// work is what one commit answers, by kind.
type work struct {
	submits  []*submitCall
	beats    []*beatCall
	ends     []*endCall
	changes  []*changeCall
	requests []*requestCall
}

func (w *work) empty() bool {
	return len(w.submits)+len(w.beats)+len(w.ends)+len(w.changes)+len(w.requests) == 0
}

// gather takes the calls of the next commit. Looks at the fold are answered here: they need no transaction.
func (s *Scheduler) gather() *work {
	return s.sort(s.calls.Take(batchLimit))
}

func (s *Scheduler) sort(ops []op) *work {
	var w work
	for _, o := range ops {
		if o.base().abandoned() {
			continue
		}
		switch o := o.(type) {
		case *submitCall:
			w.submits = append(w.submits, o)
		case *beatCall:
			w.beats = append(w.beats, o)
		case *endCall:
			w.ends = append(w.ends, o)
		case *changeCall:
			w.changes = append(w.changes, o)
		case *requestCall:
			w.requests = append(w.requests, o)
		case *lookCall:
			o.fn()
			o.answer(nil)
		}
	}
	return &w
}

func (w *work) ops() []op {
	var all []op
	for _, c := range w.beats {
		all = append(all, c)
	}
	for _, c := range w.submits {
		all = append(all, c)
	}
	for _, c := range w.ends {
		all = append(all, c)
	}
	for _, c := range w.changes {
		all = append(all, c)
	}
	for _, c := range w.requests {
		all = append(all, c)
	}
	return all
}

// pass is one transaction on its way: what was loaded, and what is to be saved.
type pass struct {
	s       *Scheduler
	tx      Tx
	now     lessor.Instant
	serving rules.Serving
	stats   Stats

	leases    map[lessor.LeaseID]*rules.Held // loaded for change; nil value = gone
	changed   map[lessor.LeaseID]*rules.Held
	ended     map[lessor.LeaseID]LeaseEnd // in this pass
	moves     []Move
	notes     []rules.Note
	reports   []rules.Report
	events    []lessor.StreamEvent
	following following
}

// commit answers w in one transaction. When the store refuses a value, the batch is halved until the guilty call stands
// alone. After any failure the fold is rebuilt: what it holds is in doubt.
func (s *Scheduler) commit(ctx context.Context, w *work) error {
	start := time.Now()
	p := &pass{s: s}
	err := s.store.Update(ctx, func(tx Tx) error {
		p.tx, p.now, p.serving = tx, tx.Now(), tx.Serving()
		return p.run(ctx, w)
	})
	ops := w.ops()
	p.stats.Calls, p.stats.Took, p.stats.Err = len(ops), time.Since(start), err
	s.cfg.Observe(p.stats)
	if err == nil {
		s.conclude(p, w)
		return nil
	}
	s.fold = nil
	if !errors.Is(err, ErrBadCall) || len(ops) < 2 {
		s.refuse(ops, err)
		if errors.Is(err, ErrBadCall) {
			return nil
		}
		return err
	}
	for _, half := range [][]op{ops[:len(ops)/2], ops[len(ops)/2:]} {
		if err := s.rebuild(ctx); err != nil {
			s.refuse(half, err)
			return err
		}
		if err := s.commit(ctx, s.sort(half)); err != nil && !errors.Is(err, ErrBadCall) {
			return err
		}
	}
	return nil
}

// run does the work of one transaction. Ends come before grants, so that what they free is handed out in the same commit.
func (p *pass) run(ctx context.Context, w *work) error {
	if err := p.loadLeases(ctx, w); err != nil {
		return fmt.Errorf("load leases: %w", err)
	}
	p.beat(w.beats)
	steps := []struct {
		verb string
		do   func() error
	}{
		{"end leases", func() error { return p.end(ctx, w.ends) }},
		{"expire leases", func() error { return p.expire(ctx) }},
		{"save leases", func() error { return p.save(ctx) }},
		{"submit", func() error { return p.submit(ctx, w.submits) }},
		{"promote", func() error { return p.promote(ctx) }},
		{"change", func() error { return p.change(ctx, w.changes) }},
		{"purge", func() error { return p.purge(ctx) }},
		{"grant", func() error { return p.grant(ctx, w.requests) }},
		{"tell", func() error { return p.trace(ctx) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.verb, err)
		}
	}
	return nil
}

// loadLeases reads, once for the whole batch, the leases that its calls name.
func (p *pass) loadLeases(ctx context.Context, w *work) error {
	p.changed, p.ended = map[lessor.LeaseID]*rules.Held{}, map[lessor.LeaseID]LeaseEnd{}
	n := len(w.beats) + len(w.ends)
	ids := make([]lessor.LeaseID, 0, n)
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
	var err error
	p.leases, err = p.tx.Leases(ctx, ids)
	if p.leases == nil {
		p.leases = map[lessor.LeaseID]*rules.Held{}
	}
	return err
}

// save writes what beats and ends decided.
func (p *pass) save(ctx context.Context) error {
	held := make([]*rules.Held, 0, len(p.changed))
	for _, h := range p.changed {
		held = append(held, h)
	}
	if err := p.tx.SaveLeases(ctx, held); err != nil {
		return err
	}
	if err := p.tx.SaveReports(ctx, p.reports); err != nil {
		return err
	}
	return p.flush(ctx)
}

// flush writes the moves and notes decided so far, so that what follows in this pass builds on them.
func (p *pass) flush(ctx context.Context) error {
	moves, notes := p.moves, p.notes
	p.moves, p.notes = nil, nil
	if err := p.tx.Move(ctx, moves); err != nil {
		return err
	}
	return p.tx.Note(ctx, notes)
}

// change runs the rare calls. Each refuses before it writes, or writes whole.
func (p *pass) change(ctx context.Context, calls []*changeCall) error {
	for _, c := range calls {
		c.err = c.fn(ctx, p)
		var refusal *lessor.Error
		if c.err != nil && !errors.As(c.err, &refusal) {
			return c.err
		}
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// conclude answers the calls of a commit that is durable, and tells those who follow the records.
func (s *Scheduler) conclude(p *pass, w *work) {
	for _, c := range w.beats {
		c.answer(nil)
	}
	for _, c := range w.submits {
		c.answer(c.err)
	}
	for _, c := range w.ends {
		c.answer(nil)
	}
	for _, c := range w.changes {
		c.answer(c.err)
	}
	s.answerRequests(w.requests)
	s.stream.publish(p.events)
}
