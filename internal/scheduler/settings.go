package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lessor"
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
func (s *Scheduler) loadSettings(ctx context.Context, v View, f *fold) error {
	if err := s.settings.load(ctx, v); err != nil {
		return err
	}
	s.fit.Store(int64(s.total() - s.cfg.ReserveUnits))
	policies, err := v.Policies(ctx)
	if err != nil {
		return err
	}
	for _, p := range policies {
		s.enact(f, p)
	}
	var hindered []Hindrance
	err = v.EachHindrance(ctx, func(h Hindrance) error {
		hindered = append(hindered, h)
		return nil
	})
	if err != nil {
		return err
	}
	f.hinderAll(hindered)
	if err := s.loadAlerted(ctx, v, f); err != nil {
		return err
	}
	if f.tickAt, err = v.NextTick(ctx); err != nil {
		return err
	}
	return s.loadHandlers(ctx, v)
}

// total returns the units in force.
func (s *Scheduler) total() int {
	if s.settings.TotalUnits != nil {
		return *s.settings.TotalUnits
	}
	return s.cfg.TotalUnits
}

// lapseSettings drops what was set until a time that has passed.
func (s *Scheduler) lapseSettings(now lessor.Instant) {
	if s.settings.Until != 0 && now >= s.settings.Until {
		s.settings.TotalUnits, s.settings.Busy, s.settings.Until, s.settings.SetAt = nil, nil, 0, 0
		s.fit.Store(int64(s.total() - s.cfg.ReserveUnits))
	}
}

// capacity returns what may be leased at now.
func (s *Scheduler) capacity(now lessor.Instant) lessor.Capacity {
	s.lapseSettings(now)
	inputs, highest := s.sampling.last(now)
	c := lessor.Capacity{TotalUnits: s.total(), ReserveUnits: s.cfg.ReserveUnits, Inputs: inputs, LeasedUnits: s.fold.index.Leased()}
	set := s.settings.Busy
	if set == nil {
		set = s.cfg.Busy
	}
	c.Busy, c.BusySource = rules.Busy(set, c.Inputs, s.cfg.BusyPoints, now)
	c.Busy = rules.BusyOf(c.Busy, c.BusySource, highest)
	c.UsableUnits = rules.Usable(c.TotalUnits, c.ReserveUnits, c.Busy, s.cfg.Percent)
	c.AvailableUnits = max(0, c.UsableUnits-c.LeasedUnits)
	return c
}

// Capacity returns what may be leased now.
func (s *Scheduler) Capacity(ctx context.Context) (c lessor.Capacity, err error) {
	err = s.look(ctx, Caller{}, func() { c = s.capacity(s.fold.serving.LastBeat) })
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
		s.lapseSettings(p.now)
		next := s.settings
		alter(p.now, &next)
		raw, err := json.Marshal(next)
		if err != nil {
			return fmt.Errorf("write setting %s: %w", settingsName, err)
		}
		if err := p.tx.SaveSetting(ctx, settingsName, raw); err != nil {
			return err
		}
		p.audit(by, object+".changed", object, s.settings, next)
		s.settings = next // if the commit fails, the fold and with it the settings are loaded again
		s.fit.Store(int64(s.total() - s.cfg.ReserveUnits))
		p.resettle()
		return nil
	})
}

// Status returns the state of the whole scheduler. It tells about all tenants, so no tenant's caller may see it.
func (s *Scheduler) Status(ctx context.Context, c Caller) (st lessor.Status, err error) {
	if c.Tenant != nil {
		return st, &lessor.Error{Code: lessor.CodeForbidden, Detail: "a tenant's token does not see the whole scheduler"}
	}
	err = s.look(ctx, c, func() {
		now := s.fold.serving.LastBeat
		d := s.fold.index.Depth()
		st = lessor.Status{
			Capacity:     s.capacity(now),
			QueueDepth:   lessor.QueueDepth{High: d[lessor.High], Normal: d[lessor.Normal], Low: d[lessor.Low], Background: d[lessor.Background]},
			ActiveLeases: s.fold.index.Leases(), Draining: s.settings.Draining,
		}
		if until := s.fold.serving.BrakeUntil; until > now {
			st.BrakeUntil = until
		}
	})
	return st, err
}
