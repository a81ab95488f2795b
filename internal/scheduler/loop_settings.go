package scheduler

import (
	"context"
	"encoding/json"
	"fmt"

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
		l.applyPolicy(f, p)
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
