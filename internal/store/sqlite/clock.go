package sqlite

import (
	"context"
	"sync"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// clock is the store's clock and the state of serving. Serving is kept in memory: one process owns the file, so no node
// serves while it is down, and every start is a gap.
type clock struct {
	now  func() time.Time
	mono func(time.Time) time.Duration

	mu      sync.Mutex
	last    rules.ClockReading
	serving rules.Serving
}

func newClock(cfg Config) *clock {
	c := &clock{now: cfg.Now}
	if c.now == nil {
		c.now = time.Now
	}
	start := c.now()
	c.mono = func(t time.Time) time.Duration { return t.Sub(start) }
	if cfg.Mono != nil {
		c.mono = func(time.Time) time.Duration { return cfg.Mono() }
	}
	return c
}

func (c *clock) read() rules.ClockReading {
	t := c.now()
	return rules.ClockReading{Wall: lessor.At(t), Mono: c.mono(t)}
}

// at returns the serving at t, without keeping it.
func (c *clock) at(t rules.ClockReading) rules.Serving {
	c.mu.Lock()
	defer c.mu.Unlock()
	return rules.Serve(c.serving, c.last, t)
}

// keep sets the last reading of the clock, and the serving.
func (c *clock) keep(t rules.ClockReading, s rules.Serving) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.serving = t, s
}

func (c *clock) known() rules.Serving {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.serving
}

// SaveServing implements scheduler.Tx. It takes effect at the commit.
func (t *tx) SaveServing(_ context.Context, s rules.Serving) error {
	if t.err != nil {
		return t.err
	}
	t.serving = s
	return nil
}
