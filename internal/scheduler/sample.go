package scheduler

import (
	"context"
	"sync"
	"time"

	"lessor"
)

// sampleEvery is how often the host is measured: three samples within the life of one.
const sampleEvery = 10 * time.Second

// sampling keeps the last measurement of the host.
type sampling struct {
	mu     sync.Mutex
	inputs lessor.BusyInputs
}

func (s *sampling) last() lessor.BusyInputs {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inputs
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
	s.sampling.mu.Lock()
	defer s.sampling.mu.Unlock()
	s.sampling.inputs = in
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
		}
	}
}
