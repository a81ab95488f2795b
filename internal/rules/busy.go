package rules

import (
	"time"

	"lessor"
)

// busyFailClosed is the rating without a recent sample of the host: almost nothing is leased.
const busyFailClosed = 8

// SampleLife is how long a sample counts.
const SampleLife = 30 * time.Second

// Points are the thresholds of one measurement, highest first. A value that reaches the first gets as many points as
// there are thresholds.
type Points []float64

func (p Points) of(v float64) int {
	for i, limit := range p {
		if v >= limit {
			return len(p) - i
		}
	}
	return 0
}

// BusyPoints are the thresholds of every measurement.
type BusyPoints struct {
	CPUPercent    Points
	MemoryPercent Points
	P95MS         Points
	ErrorShare    Points
	InFlight      Points
}

// DefaultBusyPoints are the thresholds of the contract.
func DefaultBusyPoints() BusyPoints {
	return BusyPoints{
		CPUPercent:    Points{95, 85, 70, 50},
		MemoryPercent: Points{95, 85, 70},
		P95MS:         Points{1500, 800, 400},
		ErrorShare:    Points{0.10, 0.03, 0.01},
		InFlight:      Points{100, 50},
	}
}

// Rate returns the busy rating of one sample, 0..10. Without requests, latency and errors give no points.
func Rate(in lessor.BusyInputs, p BusyPoints) int {
	sum := p.CPUPercent.of(in.CPUPercent) + p.MemoryPercent.of(in.MemoryPercent) + p.InFlight.of(float64(in.InFlight))
	if in.Requests > 0 {
		sum += p.P95MS.of(in.P95MS) + p.ErrorShare.of(in.ErrorShare)
	}
	return min(sum, MaxBusy)
}

// Busy returns the rating at now and its source: what an operator set, which holds on every node; else the highest of
// all nodes. This node's own is what is configured, else the last sample, else fail closed.
func Busy(
	set *Override, configured *int, in lessor.BusyInputs, highest int, p BusyPoints, now lessor.Instant,
) (int, lessor.BusySource) {
	switch {
	case set != nil:
		return set.Value, lessor.BusySet
	case configured != nil:
		return max(*configured, highest), lessor.BusySet
	case in.SampledAt == 0 || now.Sub(in.SampledAt).Abs() > SampleLife: // Abs: the clock may have stepped back
		return max(busyFailClosed, highest), lessor.BusyFailClosed
	default:
		return max(Rate(in, p), highest), lessor.BusyHost
	}
}
