package scheduler

import (
	"context"
	"fmt"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// correction corrects instants that were set while the clock was ahead: after a step back, retries, ticks, circuits,
// watches and settings would wait for as long as the clock was wrong. It is due at every start, because no node saw the
// clock before, and after every step back. It works in pages, between which the loop answers calls.
type correction struct {
	due    bool
	waits  bool     // the waits of jobs are corrected
	listed bool     // the definitions below are known
	ids    []string // definitions whose next tick is wrong
}

// noteClock records a reading of the store's clock, and plans a correction if the clock was set back.
func (l *loop) noteClock(now lessor.Instant) {
	reading := rules.ClockReading{Wall: now, Mono: l.now().Sub(l.began)}
	if rules.SteppedBack(l.clock, reading) {
		l.setBack(now)
		l.correction = correction{due: true}
	}
	l.clock = reading
}

// setBack corrects the instants in memory.
func (l *loop) setBack(now lessor.Instant) {
	s := &l.starving
	s.since, s.askedAt = min(s.since, now), min(s.askedAt, now)
	l.workers.setBack(now)
	f := l.fold
	l.retaining.at, f.OthersAt = min(l.retaining.at, now), min(f.OthersAt, now)
	for i := range l.expected {
		e := &l.expected[i]
		e.at = min(e.at, now.Add(e.within))
		l.expectAt = min(l.expectAt, e.at)
	}
}

// correct continues the correction until it is complete, or until calls must be answered.
func (l *loop) correct(ctx context.Context) error {
	for more := false; l.correction.due && !more; {
		var err error
		if more, err = l.correctNext(ctx); err != nil {
			return fmt.Errorf("correct times: %w", err)
		}
	}
	return nil
}

// correctNext does one step, and reports whether it filled a page.
func (l *loop) correctNext(ctx context.Context) (full bool, err error) {
	c := &l.correction
	switch {
	case !c.waits:
		err = l.correctIn(ctx, func(p *pass) (err error) {
			full, err = p.correctWaits(ctx)
			return err
		})
		c.waits = err == nil && !full
	case !c.listed:
		c.ids, err = l.wronglyDue(ctx)
		c.listed = err == nil
	case len(c.ids) > 0:
		n := min(tickBatch, len(c.ids))
		err = l.correctIn(ctx, func(p *pass) error { return p.correctNextTicks(ctx, c.ids[:n]) })
		if err == nil {
			c.ids, full = c.ids[n:], true
		}
	default:
		err = l.correctIn(ctx, func(p *pass) error {
			if err := p.correctWatches(ctx); err != nil {
				return err
			}
			return p.correctCooldowns(ctx)
		})
		if err == nil {
			l.failing.setBack(l.fold.Serving.LastBeat)
			l.correction = correction{}
		}
	}
	return full, err
}

func (l *loop) correctIn(ctx context.Context, fn func(p *pass) error) error {
	_, err := l.transact(ctx, 0, func(p *pass) error {
		if err := fn(p); err != nil {
			return err
		}
		return p.flush(ctx)
	})
	return err
}

// correctWaits restarts at now the waits of jobs that began in the future, and reports whether there may be more.
func (p *pass) correctWaits(ctx context.Context) (more bool, err error) {
	ahead, err := p.tx.Ahead(ctx, p.now.Add(fold.MaxJitter), dueLimit)
	if err != nil {
		return false, err
	}
	if err := p.follow(ctx); err != nil {
		return false, err
	}
	for _, w := range ahead {
		if rules.CorrectWait(&w.Turn, &w.Wait, p.now) {
			p.moves = append(p.moves, Move{From: rules.Delayed, To: rules.Delayed, Turn: w.Turn, Wait: w.Wait})
			p.l.fold.Delay(w.Wait.Until)
		}
	}
	return len(ahead) == dueLimit, nil
}

// wronglyDue lists the definitions whose next tick was chosen on a clock that has since been set back.
func (l *loop) wronglyDue(ctx context.Context) (ids []string, err error) {
	err = l.store.View(ctx, func(v View) error {
		q := DefinitionQuery{Limit: pageLimit}
		for {
			page, err := v.DefinitionList(ctx, q)
			if err != nil {
				return err
			}
			for _, d := range page {
				if rules.CorrectNextTick(d, ticker, v.Now()) {
					ids = append(ids, d.ID)
				}
			}
			if len(page) < q.Limit {
				return nil
			}
			q.After = PlaceOfDefinition(page[len(page)-1])
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	return ids, nil
}

// correctNextTicks computes the next tick of definitions again.
func (p *pass) correctNextTicks(ctx context.Context, ids []string) error {
	locked, err := p.lockDefinitions(ctx, ids)
	if err != nil {
		return err
	}
	var changed []*rules.Definition
	for _, d := range locked {
		if rules.CorrectNextTick(d, ticker, p.now) {
			changed = append(changed, d)
		}
	}
	return p.saveDefinitions(ctx, changed)
}

// correctWatches shortens the watches of leases.
func (p *pass) correctWatches(ctx context.Context) error {
	var ids []lessor.LeaseID
	err := p.tx.EachLease(ctx, func(h *rules.Held) error {
		if h.WatchUntil.Sub(p.now) > h.TTL {
			ids = append(ids, h.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	held, err := p.tx.Leases(ctx, ids)
	if err != nil {
		return err
	}
	p.readClock()
	var changed []*rules.Held
	for _, h := range held {
		if rules.CorrectWatch(h, p.now) {
			changed = append(changed, h)
			p.planCheck(h)
		}
	}
	return p.tx.SaveLeases(ctx, changed)
}

// correctCooldowns corrects the times at which open circuits are tried and at which a temporary capacity ends.
func (p *pass) correctCooldowns(ctx context.Context) error {
	f := p.l.fold
	ids := f.Cooling(p.now)
	circuits, definitions, err := p.lockCircuits(ctx, ids)
	if err != nil {
		return err
	}
	var changed []*rules.Circuit
	for id, c := range circuits {
		if d := definitions[id]; d != nil && c.CorrectCooldown(d, p.now) {
			c.Tenant = d.Tenant
			changed = append(changed, c)
		}
	}
	if err := p.saveCircuits(ctx, changed); err != nil {
		return err
	}
	return p.correctSettings(ctx)
}

// correctSettings makes sure that a temporary capacity ends after the duration for which it was set.
func (p *pass) correctSettings(ctx context.Context) error {
	corrected := func() settings {
		next := p.l.settings
		next.Capacity = next.Capacity.Corrected(p.now)
		return next
	}
	if corrected() == p.l.settings {
		return nil
	}
	if err := p.gate(ctx); err != nil {
		return err
	}
	return p.saveSettings(ctx, corrected()) // another node may have changed them before the gate
}
