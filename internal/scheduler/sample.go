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

// sample measures the host once, and exchanges ratings with the other nodes. A failed measurement is no sample: without
// fresh ones the rating fails closed, unless one is configured.
func (s *Scheduler) sample(ctx context.Context) {
	if s.cfg.Sample == nil || ctx.Err() != nil {
		return
	}
	at := time.Now()
	in, err := s.cfg.Sample()
	rating := rules.Rate(in, s.cfg.BusyPoints)
	switch {
	case s.cfg.Busy != nil:
		rating = *s.cfg.Busy
	case err != nil:
		return
	}
	highest, rateErr := s.store.Rate(ctx, rating, rules.SampleLife)
	if rateErr != nil {
		return
	}
	s.sampling.mu.Lock()
	defer s.sampling.mu.Unlock()
	if s.sampling.highest = highest; err == nil {
		s.sampling.inputs, s.sampling.at = in, at
	}
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
