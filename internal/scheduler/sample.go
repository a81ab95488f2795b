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

// sample measures the host once. A failed measurement is no sample: without fresh ones the rating fails closed.
func (s *Scheduler) sample(ctx context.Context) {
	if s.cfg.Sample == nil || ctx.Err() != nil {
		return
	}
	at := time.Now()
	in, err := s.cfg.Sample()
	if err != nil {
		return
	}
	highest, err := s.store.Rate(ctx, rules.Rate(in, s.cfg.BusyPoints), rules.SampleLife)
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
