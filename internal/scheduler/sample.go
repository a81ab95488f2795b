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
	highest int // rating of all nodes
}

func (s *sampling) last() (in lessor.BusyInputs, highest int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inputs, s.highest
}

// sample measures the host once. A failed measurement is no sample: without fresh ones the rating fails closed.
func (s *Scheduler) sample(ctx context.Context) {
	if s.cfg.Sample == nil || ctx.Err() != nil {
		return
	}
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
	s.sampling.inputs, s.sampling.highest = in, highest
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
			s.meet(ctx)
		}
	}
}
