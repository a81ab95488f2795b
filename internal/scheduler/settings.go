package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// Capacity returns what may be leased now.
func (s *Scheduler) Capacity(ctx context.Context) (c lessor.Capacity, err error) {
	err = s.read(ctx, Caller{}, func(l *loop) { c = l.capacity(l.fold.Serving.LastBeat) })
	return c, err
}

// SetCapacity changes the units and the busy rating until the next change, also over restarts.
func (s *Scheduler) SetCapacity(ctx context.Context, by Caller, ch CapacityChange) (c lessor.Capacity, err error) {
	if err := rules.CheckCapacity(ch.TotalUnits, ch.Busy, ch.ExpiresInS, s.cfg.ReserveUnits); err != nil {
		return c, err
	}
	err = s.set(ctx, by, "capacity", func(now lessor.Instant, n *settings) {
		n.TotalUnits = overlay(n.TotalUnits, ch.TotalUnits, ch.ResetTotalUnits)
		n.Busy = overlay(n.Busy, ch.Busy, ch.ResetBusy)
		n.Until, n.SetAt = 0, 0
		if ch.ExpiresInS != nil {
			n.SetAt = now
			n.Until = now.Add(time.Duration(*ch.ExpiresInS) * time.Second)
		}
	})
	if err != nil {
		return c, err
	}
	return s.Capacity(ctx)
}

func overlay(old *int, v *int64, reset bool) *int {
	switch {
	case v != nil:
		n := int(*v)
		return &n
	case reset:
		return nil
	}
	return old
}

// SetDraining stops or resumes granting, and keeps that over restarts.
func (s *Scheduler) SetDraining(ctx context.Context, c Caller, draining bool) (lessor.Status, error) {
	if err := s.set(ctx, c, "drain", func(_ lessor.Instant, n *settings) { n.Draining = draining }); err != nil {
		return lessor.Status{}, err
	}
	return s.Status(ctx, c)
}

func (s *Scheduler) set(ctx context.Context, by Caller, object string, alter func(lessor.Instant, *settings)) error {
	return s.change(ctx, Caller{}, func(ctx context.Context, p *pass) error {
		if err := p.gate(ctx); err != nil {
			return err
		}
		was := p.l.settings.inForce(p.now)
		next := was
		alter(p.now, &next)
		raw, err := json.Marshal(next)
		if err != nil {
			return fmt.Errorf("write setting %s: %w", settingsName, err)
		}
		if err := p.tx.SaveSetting(ctx, settingsName, raw); err != nil {
			return err
		}
		p.audit(by, object+".changed", object, was, next)
		p.l.setSettings(next) // if the commit fails, the fold and with it the settings are loaded again
		p.l.fold.ChangeSettings()
		return nil
	})
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
			ActiveLeases: l.fold.Index.Leases(), Draining: l.settings.Draining,
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
