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

// settings are what operators set at run time. They are kept in the store and win over the configuration.
type settings struct {
	TotalUnits *int           `json:"total_units,omitempty"`
	Busy       *int           `json:"busy,omitempty"`
	Until      lessor.Instant `json:"until,omitempty"`  // when TotalUnits and Busy end; 0 = never
	SetAt      lessor.Instant `json:"set_at,omitempty"` // when Until was
	Draining   bool           `json:"draining,omitempty"`
}

const settingsName = "operator"

func (s *settings) load(ctx context.Context, v View) error {
	*s = settings{}
	raw, err := v.Setting(ctx, settingsName)
	if err != nil || raw == nil {
		return err
	}
	if err := json.Unmarshal(raw, s); err != nil {
		return fmt.Errorf("read setting %s: %w", settingsName, err)
	}
	return nil
}

// loadSettings reads all that operators and failures set: capacity, policies, what holds definitions back, schemas, and when the next
// tick is due.
func (l *loop) loadSettings(ctx context.Context, v View, f *fold.Fold) error {
	if err := l.settings.load(ctx, v); err != nil {
		return err
	}
	l.fit.Store(int64(l.total() - l.cfg.ReserveUnits))
	policies, err := v.Policies(ctx)
	if err != nil {
		return err
	}
	for _, p := range policies {
		l.enact(f, p)
	}
	var blocked []fold.Block
	err = v.EachBlock(ctx, func(h fold.Block) error {
		blocked = append(blocked, h)
		return nil
	})
	if err != nil {
		return err
	}
	f.BlockAll(blocked)
	if err := l.loadAlerted(ctx, v, f); err != nil {
		return err
	}
	if f.TickAt, err = v.NextTick(ctx); err != nil {
		return err
	}
	return l.loadHandlers(ctx, v)
}

// total returns the units in force.
func (l *loop) total() int {
	if l.settings.TotalUnits != nil {
		return *l.settings.TotalUnits
	}
	return l.cfg.TotalUnits
}

// lapseSettings drops what was set until a time that has passed.
func (l *loop) lapseSettings(now lessor.Instant) {
	if l.settings.Until != 0 && now >= l.settings.Until {
		l.settings.TotalUnits, l.settings.Busy, l.settings.Until, l.settings.SetAt = nil, nil, 0, 0
		l.fit.Store(int64(l.total() - l.cfg.ReserveUnits))
	}
}

// capacity returns what may be leased at now.
func (l *loop) capacity(now lessor.Instant) lessor.Capacity {
	l.lapseSettings(now)
	inputs, highest := l.sampling.last(now)
	c := lessor.Capacity{TotalUnits: l.total(), ReserveUnits: l.cfg.ReserveUnits, Inputs: inputs, LeasedUnits: l.fold.Index.Leased()}
	set := l.settings.Busy
	if set == nil {
		set = l.cfg.Busy
	}
	c.Busy, c.BusySource = rules.Busy(set, c.Inputs, l.cfg.BusyPoints, now)
	c.Busy = rules.BusyOf(c.Busy, c.BusySource, highest)
	c.UsableUnits = rules.Usable(c.TotalUnits, c.ReserveUnits, c.Busy, l.cfg.Percent)
	c.AvailableUnits = max(0, c.UsableUnits-c.LeasedUnits)
	return c
}

// Capacity returns what may be leased now.
func (s *Scheduler) Capacity(ctx context.Context) (c lessor.Capacity, err error) {
	err = s.read(ctx, Caller{}, func(l *loop) { c = l.capacity(l.fold.Serving.LastBeat) })
	return c, err
}

// SetCapacity changes the units and the busy rating until told otherwise, and keeps that over restarts.
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
		l := p.l
		l.lapseSettings(p.now)
		next := l.settings
		alter(p.now, &next)
		raw, err := json.Marshal(next)
		if err != nil {
			return fmt.Errorf("write setting %s: %w", settingsName, err)
		}
		if err := p.tx.SaveSetting(ctx, settingsName, raw); err != nil {
			return err
		}
		p.audit(by, object+".changed", object, l.settings, next)
		l.settings = next // if the commit fails, the fold and with it the settings are loaded again
		l.fit.Store(int64(l.total() - l.cfg.ReserveUnits))
		p.l.fold.ChangeSettings()
		return nil
	})
}

// Status returns the state of the whole scheduler. It tells about all tenants, so no tenant's caller may see it.
func (s *Scheduler) Status(ctx context.Context, c Caller) (st lessor.Status, err error) {
	if c.Tenant != nil {
		return st, &lessor.Error{Code: lessor.CodeForbidden, Detail: "a tenant's token does not see the whole scheduler"}
	}
	err = s.read(ctx, c, func(l *loop) {
		now := l.fold.Serving.LastBeat
		d := l.fold.Index.Depth()
		st = lessor.Status{
			Capacity:     l.capacity(now),
			QueueDepth:   lessor.QueueDepth{High: d[lessor.High], Normal: d[lessor.Normal], Low: d[lessor.Low], Background: d[lessor.Background]},
			ActiveLeases: l.fold.Index.Leases(), Draining: l.settings.Draining,
		}
		if until := l.fold.Serving.BrakeUntil; until > now {
			st.BrakeUntil = until
		}
	})
	return st, err
}
