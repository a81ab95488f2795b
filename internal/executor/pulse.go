package executor

import (
	"context"
	"time"

	"lessor"
	"lessor/internal/sentinel"
)

// keepPulse writes the sentinel at every interval, whatever the command does.
func (s *shim) keepPulse(ctx context.Context) {
	tick := time.NewTicker(s.order.Task.PulseEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.pulseNow:
		}
		s.pulse()
	}
}

// pulse writes the sentinel. A failure is a warning, once until it works again: the command goes on.
func (s *shim) pulse() {
	s.seq++
	status, movedAt := s.status()
	err := s.folder.WriteSentinel(sentinel.Sentinel{
		JobID:         s.folder.Job(),
		Status:        status,
		LastHeartbeat: lessor.At(time.Now()),
		WorkspacePath: s.folder.Path(),
		SessionID:     sentinel.SessionOf(s.order.Grant.Job.ID, s.order.Grant.Job.Payload),
		AgentEngine:   s.order.Task.Engine,
		StartedAt:     lessor.At(s.started),
		Seq:           s.seq,
		Fence:         s.order.Grant.Lease.Fence,
		LastProgress:  lessor.At(movedAt),
	})
	switch {
	case err != nil && !s.pulseFailed:
		s.log.Warn("sentinel is not written", "error", err)
	case err == nil && s.pulseFailed:
		s.log.Info("sentinel is written again")
	}
	s.pulseFailed = err != nil
}

func (s *shim) removeSentinel() {
	if err := s.folder.RemoveSentinel(); err != nil {
		s.log.Warn("sentinel is not removed", "error", err)
	}
}
