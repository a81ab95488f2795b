package main

import (
	"context"
	"fmt"
	"time"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/memory"
)

// watched is the store of a node, with the faults of the connection to the database, and with a check of the tables
// after every commit.
type watched struct {
	*memory.Store
	node *node
}

// reach fails if the database is out of reach.
func (s *watched) reach() error {
	if w := s.node.world; w.now < w.faults.downUntil {
		return fmt.Errorf("%w: the database is down", scheduler.ErrUnreachable)
	}
	return nil
}

// Update implements scheduler.Store.
func (s *watched) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	if err := s.reach(); err != nil {
		return err
	}
	err := s.Store.Update(ctx, fn)
	s.node.world.committed(s.node, err)
	return err
}

// Send implements scheduler.Store.
func (s *watched) Send(
	ctx context.Context, on scheduler.Footing, fn func(scheduler.Tx) error,
) (func() error, error) {
	if err := s.reach(); err != nil {
		return nil, err
	}
	wait, err := s.Store.Send(ctx, on, fn)
	if err != nil {
		return nil, err
	}
	return func() error {
		err := wait()
		s.node.world.committed(s.node, err)
		return err
	}, nil
}

// View implements scheduler.Store.
func (s *watched) View(ctx context.Context, fn func(scheduler.View) error) error {
	if err := s.reach(); err != nil {
		return err
	}
	return s.Store.View(ctx, fn)
}

// Serve implements scheduler.Store.
func (s *watched) Serve(ctx context.Context, anew bool) (rules.Serving, error) {
	if err := s.reach(); err != nil {
		return rules.Serving{}, err
	}
	serving, err := s.Store.Serve(ctx, anew)
	if err == nil {
		s.node.world.served(s.node)
		s.node.world.killAgain(s.node)
	}
	return serving, err
}

// Rate implements scheduler.Store.
func (s *watched) Rate(ctx context.Context, busy int, life time.Duration) (int, error) {
	if err := s.reach(); err != nil {
		return 0, err
	}
	return s.Store.Rate(ctx, busy, life)
}

// Reach implements memory.Stepper: at a statement others may run, the node may crash, and the database may hang.
func (w *world) Reach(_, _ string) {
	t := w.current
	if t == nil || t.process() == nil {
		return // a look at the tables from outside
	}
	t.mustLive()
	if n := t.process(); n.doomed > 0 {
		if n.doomed--; n.doomed == 0 {
			n.crash()
		}
	}
	if hang := w.faults.hangUntil - w.now; hang > 0 {
		t.sleep(hang)
	}
	if w.random.Float64() < w.plan.Handovers {
		t.sleep(w.latency())
	}
}

// Wait implements memory.Stepper.
func (w *world) Wait(name, what string) {
	t := w.current
	w.trace.say(w, name, "waits", what)
	t.mustLive()
	t.sleep(time.Millisecond + w.latency())
}

// Fate implements memory.Stepper.
func (w *world) Fate(string) memory.Fate {
	f := &w.faults
	switch {
	case w.now < f.fullUntil:
		w.counts.Faults++
		return memory.Full
	case f.commits > 0 && w.random.Float64() < f.commits:
		w.noteFault(0)
		w.counts.Faults++
		return memory.Fate(1 + w.random.IntN(int(memory.LostUnknown)))
	}
	return memory.Durable
}

// latency is the time of one statement.
func (w *world) latency() time.Duration {
	return time.Duration(w.random.ExpFloat64()*float64(w.plan.Latency)) + time.Microsecond
}
