package scheduler

import (
	"context"
	"sync"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// sampleEvery is how often the host is measured: three samples within the life of one.
const sampleEvery = 10 * time.Second

// sampling keeps the last measurement of the host.
type sampling struct {
	mu      sync.Mutex
	inputs  lessor.BusyInputs
	at      time.Time // on this node's clock, which may differ from the store's; zero = there is none
	highest int       // rating of all nodes
}

// last returns the last measurement, its time on the store's clock: now is a reading of that clock,
// and clock one of this node's at the same moment.
func (s *sampling) last(now lessor.Instant, clock time.Time) (in lessor.BusyInputs, highest int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in = s.inputs
	if !s.at.IsZero() {
		in.SampledAt = now.Add(-clock.Sub(s.at))
	}
	return in, s.highest
}

// sample measures the host once, unless its rating is configured, and exchanges ratings with the other nodes. A failed
// measurement is no sample: without fresh ones the rating fails closed.
func (s *Scheduler) sample(ctx context.Context) {
	if ctx.Err() != nil || s.cfg.Busy == nil && s.cfg.Sample == nil {
		return
	}
	var at time.Time
	var in lessor.BusyInputs
	rating := s.cfg.Busy
	if rating == nil {
		var err error
		at = s.now()
		if in, err = s.cfg.Sample(); err != nil {
			return
		}
		rating = new(rules.Rate(in, s.cfg.BusyPoints))
	}
	highest, err := s.store.Rate(ctx, *rating, rules.SampleLife)
	if err != nil {
		return
	}
	s.sampling.mu.Lock()
	defer s.sampling.mu.Unlock()
	s.sampling.inputs, s.sampling.at, s.sampling.highest = in, at, highest
}

func (s *Scheduler) sampleLoop(ctx context.Context) {
	t := time.NewTicker(sampleEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.sample(ctx)
			s.exchangeWorkers(ctx)
		}
	}
}
