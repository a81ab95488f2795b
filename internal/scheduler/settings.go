package scheduler

import (
	"context"
	"encoding/json"
	"fmt"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// Capacity returns what may be leased now.
func (s *Scheduler) Capacity(ctx context.Context) (c lessor.Capacity, err error) {
	err = s.read(ctx, Caller{}, func(l *loop) { c = l.capacity(l.fold.Serving.LastBeat) })
	return c, err
}

// CheckCapacity refuses what SetCapacity would refuse for its fields, and changes nothing.
func (s *Scheduler) CheckCapacity(ask lessor.CapacityAsk) error {
	_, err := rules.Overrides{}.Change(&ask, s.cfg.ReserveUnits, 0)
	return err
}

// SetCapacity changes the units and the busy rating, and keeps that over restarts.
func (s *Scheduler) SetCapacity(ctx context.Context, by Caller, ask lessor.CapacityAsk) (c lessor.Capacity, err error) {
	err = s.set(ctx, func(p *pass, n *settings) (err error) {
		was := n.Capacity
		n.Capacity, err = was.Change(&ask, s.cfg.ReserveUnits, p.now)
		if n.Capacity != was {
			p.audit(by, "capacity.changed", "capacity", was, n.Capacity)
		}
		return err
	})
	if err != nil {
		return c, err
	}
	return s.Capacity(ctx)
}

// SetDraining stops or resumes granting, and keeps that over restarts.
func (s *Scheduler) SetDraining(ctx context.Context, c Caller, draining bool) (lessor.Status, error) {
	err := s.set(ctx, func(p *pass, n *settings) error {
		shown := func(draining bool) any { return map[string]bool{"draining": draining} }
		p.audit(c, "drain.changed", "drain", shown(n.Draining), shown(draining))
		n.Draining = draining
		return nil
	})
	if err != nil {
		return lessor.Status{}, err
	}
	return s.Status(ctx, c)
}

func (s *Scheduler) set(ctx context.Context, alter func(*pass, *settings) error) error {
	return s.change(ctx, Caller{}, func(ctx context.Context, p *pass) error {
		if err := p.gate(ctx); err != nil {
			return err
		}
		next := p.l.settings.inForce(p.now)
		if err := alter(p, &next); err != nil {
			return err
		}
		return p.saveSettings(ctx, next)
	})
}

// saveSettings puts settings into force on every node, if they differ.
func (p *pass) saveSettings(ctx context.Context, next settings) error {
	if next == p.l.settings {
		return nil
	}
	raw, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("write setting %s: %w", settingsName, err)
	}
	p.l.settings = next // if the commit fails, the fold and with it the settings are loaded again
	p.l.noteFit(p.now)
	p.l.fold.ChangeSettings()
	return p.tx.SaveSetting(ctx, settingsName, raw)
}

// Status returns the state of the whole scheduler. It tells about all tenants, so no tenant's caller may see it.
func (s *Scheduler) Status(ctx context.Context, c Caller) (st lessor.Status, err error) {
	if c.Tenant != nil {
		return st, &lessor.Error{
			Code: lessor.CodeForbidden, Detail: "a tenant's token does not see the whole scheduler",
		}
	}
	err = s.read(ctx, c, func(l *loop) {
		now := l.fold.Serving.LastBeat
		d := l.fold.Index.Depth()
		st = lessor.Status{
			Capacity: l.capacity(now),
			QueueDepth: lessor.QueueDepth{
				High: d[lessor.High], Normal: d[lessor.Normal], Low: d[lessor.Low], Background: d[lessor.Background],
			},
			ActiveLeases: l.fold.Index.Leases(), Waiting: l.fold.Waiting, Draining: l.settings.Draining,
		}
		if until := l.fold.Serving.BrakeUntil; until > now {
			st.BrakeUntil = until
		}
	})
	return st, err
}

// Figures is what a scrape of the metrics shows.
type Figures struct {
	Status   lessor.Status
	Circuits map[lessor.CircuitState]int // that are not closed
	Alerts   map[lessor.AlertKind]int    // that are open, countedAlerts at most
}

// countedAlerts bounds what a scrape reads: a larger figure would change no decision.
const countedAlerts = 1000

// Figures counts what is open now.
func (s *Scheduler) Figures(ctx context.Context) (f Figures, err error) {
	if f.Status, err = s.Status(ctx, Caller{}); err != nil {
		return f, err
	}
	f.Circuits, f.Alerts = map[lessor.CircuitState]int{}, map[lessor.AlertKind]int{}
	err = s.read(ctx, Caller{}, func(l *loop) {
		l.fold.Blocks(func(b fold.Block) {
			if !b.Circuit.Closed() {
				f.Circuits[b.Circuit.State]++
			}
		})
	})
	if err != nil {
		return f, err
	}
	open, _, err := s.Alerts(ctx, Caller{}, lessor.AlertFilter{Open: true, Limit: countedAlerts})
	for i := range open {
		f.Alerts[open[i].Kind]++
	}
	return f, err
}
