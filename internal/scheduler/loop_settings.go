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
	Capacity rules.Overrides `json:"capacity"`
	Draining bool            `json:"draining"`
}

const settingsName = "operator"

func loadOperatorSettings(ctx context.Context, v View) (s settings, err error) {
	raw, err := v.Setting(ctx, settingsName)
	if err != nil || raw == nil {
		return s, err
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("read setting %s: %w", settingsName, err)
	}
	return s, nil
}

// loadSettings reads all that operators and failures set: capacity, policies, what blocks definitions, schemas, and
// when the next tick is due.
func (l *loop) loadSettings(ctx context.Context, v View, f *fold.Fold) error {
	s, err := loadOperatorSettings(ctx, v)
	if err != nil {
		return err
	}
	l.settings = s
	l.noteFit(v.Now())
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
	if err := l.loadAlerted(ctx, v); err != nil {
		return err
	}
	if f.TickAt, err = v.NextTick(ctx); err != nil {
		return err
	}
	return l.loadHandlers(ctx, v)
}

// inForce returns the settings without those that have expired.
func (s settings) inForce(now lessor.Instant) settings {
	s.Capacity = s.Capacity.InForce(now)
	return s
}

// noteFit sets the largest job that may be submitted. The stored settings do not change: if the clock is set back,
// expired settings are in force again, on every node alike.
func (l *loop) noteFit(now lessor.Instant) {
	l.fit.Store(int64(l.total(l.settings.inForce(now)) - l.cfg.ReserveUnits))
}

func (l *loop) total(s settings) int {
	if set := s.Capacity.TotalUnits; set != nil {
		return set.Value
	}
	return l.cfg.TotalUnits
}

// capacity returns what may be leased at now.
func (l *loop) capacity(now lessor.Instant) lessor.Capacity {
	s := l.settings.inForce(now)
	inputs, highest := l.sampling.last(now, l.now())
	c := lessor.Capacity{
		TotalUnits: l.total(s), ReserveUnits: l.cfg.ReserveUnits, Inputs: inputs,
		TotalUnitsExpiresAt: s.Capacity.TotalUnits.Ends(), BusyExpiresAt: s.Capacity.Busy.Ends(),
	}
	c.Busy, c.BusySource = rules.Busy(s.Capacity.Busy, l.cfg.Busy, inputs, highest, l.cfg.BusyPoints, now)
	c.UsableUnits = rules.Usable(c.TotalUnits, c.ReserveUnits, c.Busy, l.cfg.Percent)
	leased(&c, l.fold.Index.Leased())
	return c
}

// leased sets how many units are leased, and how many that leaves.
func leased(c *lessor.Capacity, units int) {
	c.LeasedUnits, c.AvailableUnits = units, max(0, c.UsableUnits-units)
}
