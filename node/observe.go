package node

import (
	"context"
	"slices"
	"time"

	"lessor"
	"lessor/internal/config"
	"lessor/internal/host"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// observe is told about every commit.
func (n *Node) observe(s scheduler.Stats) {
	n.telemetry.Observe(s)
	if s.MassExpiry {
		n.log.Warn("mass_expiry: many leases of several workers lapsed at once; nothing was ended, they have one more ttl")
	}
	if s.Err != nil {
		n.log.Error("a commit failed", "calls", s.Calls, "error", s.Err)
	}
}

// scrapeTimeout bounds what a scrape of the metrics waits for the scheduler.
const scrapeTimeout = time.Second

// gauges is what the metrics show of the scheduler's state.
func (n *Node) gauges() (lessor.Status, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	st, err := n.scheduler.Status(ctx, local)
	return st, err == nil
}

// sample measures the host and the API for the busy rating.
func (n *Node) sample(h *host.Sampler) func() (lessor.BusyInputs, error) {
	return func() (in lessor.BusyInputs, err error) {
		now := time.Now()
		in.CPUPercent, in.MemoryPercent, err = h.Sample()
		in.P95MS, in.ErrorShare, in.InFlight, in.Requests = n.telemetry.APIWindow(now)
		in.SampledAt = lessor.At(now)
		return in, err
	}
}

// busyPoints turns thresholds as they are written, from the lowest, into those of the rules, from the highest.
func busyPoints(p config.Points) rules.BusyPoints {
	highestFirst := func(limits []float64) rules.Points {
		points := slices.Clone(limits)
		slices.Reverse(points)
		return points
	}
	return rules.BusyPoints{
		CPUPercent: highestFirst(p.CPU), MemoryPercent: highestFirst(p.Memory), P95MS: highestFirst(p.P95MS),
		ErrorShare: highestFirst(p.ErrorShare), InFlight: highestFirst(p.InFlight),
	}
}
