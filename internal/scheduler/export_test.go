package scheduler

import (
	"context"
	"math"
	"time"
)

// ActAsSoleNode makes a node believe that no other node writes its store. Call it before Run.
func (s *Scheduler) ActAsSoleNode() { s.pace.Shared = -1 }

// ActAsOneOfSeveral makes a node believe that others write its store. Call it before Run.
func (s *Scheduler) ActAsOneOfSeveral() { s.pace.Shared = math.MaxInt64 }

// SweepLanesEvery removes unused lanes sooner than after two hours. Call it before Run.
func (s *Scheduler) SweepLanesEvery(d time.Duration) { s.pace.Lanes = d }

// Stepped is a scheduler whose loop a test steps, on a clock of the test.
type Stepped struct{ *Manual }

// NewStepped returns a scheduler that does nothing until Step. now is the clock of its node.
func NewStepped(store Store, cfg Config, now func() time.Time) *Stepped {
	m := thisMachine()
	m.Now = now
	return &Stepped{NewManual(store, cfg, m, Pace{})}
}

// Step runs one step of the loop, with the calls that wait, and returns when the next is due.
func (s *Stepped) Step(ctx context.Context) (time.Duration, error) {
	wait, err := s.Manual.Step(ctx)
	if err == nil {
		err = s.loop.awaitAll(ctx)
	}
	return wait, err
}

// Begin runs a verb in a goroutine, as a caller does, and steps the loop once, which may answer it.
func (s *Stepped) Begin(ctx context.Context, verb func()) (<-chan struct{}, error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		verb()
	}()
	select {
	case <-done: // refused without a transaction
		return done, nil
	case <-s.calls.Ready(1):
	}
	_, err := s.Step(ctx)
	return done, err
}

// Answer is Begin for a verb that one step answers.
func (s *Stepped) Answer(ctx context.Context, verb func()) error {
	done, err := s.Begin(ctx, verb)
	<-done
	return err
}
