package rules

import (
	"testing"
	"time"

	"lessor"
)

func TestBusyPointsOfEachThreshold(t *testing.T) {
	cpu := func(v float64) lessor.BusyInputs { return lessor.BusyInputs{CPUPercent: v} }
	memory := func(v float64) lessor.BusyInputs { return lessor.BusyInputs{MemoryPercent: v} }
	p95 := func(v float64) lessor.BusyInputs { return lessor.BusyInputs{P95MS: v, Requests: 1} }
	errors := func(v float64) lessor.BusyInputs { return lessor.BusyInputs{ErrorShare: v, Requests: 1} }
	flight := func(v float64) lessor.BusyInputs { return lessor.BusyInputs{InFlight: int(v)} }
	for _, c := range []struct {
		name   string
		of     func(float64) lessor.BusyInputs
		points []float64 // value, points, value, points, …
	}{
		{"cpu", cpu, []float64{0, 0, 49.9, 0, 50, 1, 69.9, 1, 70, 2, 84.9, 2, 85, 3, 94.9, 3, 95, 4, 100, 4}},
		{"memory", memory, []float64{0, 0, 69.9, 0, 70, 1, 84.9, 1, 85, 2, 94.9, 2, 95, 3, 100, 3}},
		{"p95", p95, []float64{0, 0, 399, 0, 400, 1, 799, 1, 800, 2, 1499, 2, 1500, 3, 60000, 3}},
		{"5xx share", errors, []float64{0, 0, 0.0099, 0, 0.01, 1, 0.0299, 1, 0.03, 2, 0.0999, 2, 0.10, 3, 1, 3}},
		{"in flight", flight, []float64{0, 0, 49, 0, 50, 1, 99, 1, 100, 2, 5000, 2}},
	} {
		for i := 0; i < len(c.points); i += 2 {
			if got, want := Rate(c.of(c.points[i]), DefaultBusyPoints()), int(c.points[i+1]); got != want {
				t.Errorf("%s of %v gives %d points, want %d", c.name, c.points[i], got, want)
			}
		}
	}
}

func TestBusyRatingIsTheSumUpToTen(t *testing.T) {
	for _, c := range []struct {
		name string
		in   lessor.BusyInputs
		want int
	}{
		{
			"4 + 3 + 3 of cpu, memory and p95",
			lessor.BusyInputs{CPUPercent: 95, MemoryPercent: 95, P95MS: 1500, Requests: 1},
			10,
		},
		{"4 + 3 + 3 + 1", lessor.BusyInputs{
			CPUPercent: 95, MemoryPercent: 95, P95MS: 1500, ErrorShare: 0.01,
			Requests: 1,
		}, 10},
		{"4 + 2 + 3", lessor.BusyInputs{CPUPercent: 95, MemoryPercent: 85, P95MS: 1500, Requests: 1}, 9},
		{"one request gives points", lessor.BusyInputs{P95MS: 1500, ErrorShare: 0.10, Requests: 1}, 6},
		{"without a request the API gives none", lessor.BusyInputs{P95MS: 1500, ErrorShare: 0.10}, 0},
	} {
		if got := Rate(c.in, DefaultBusyPoints()); got != c.want {
			t.Errorf("%s: the rating is %d, want %d", c.name, got, c.want)
		}
	}
}

func TestBusyFailsClosedWithoutAFreshSample(t *testing.T) {
	sampled := func(at lessor.Instant) lessor.BusyInputs { return lessor.BusyInputs{CPUPercent: 50, SampledAt: at} }
	for _, c := range []struct {
		name   string
		set    *int // by the configuration
		in     lessor.BusyInputs
		rating int
		source lessor.BusySource
	}{
		{"sampled now", nil, sampled(start), 1, lessor.BusyHost},
		{"sampled 30 s ago", nil, sampled(after(-30 * time.Second)), 1, lessor.BusyHost},
		{"sampled 30 s + 1 ms ago", nil, sampled(after(-30*time.Second - time.Millisecond)), 8, lessor.BusyFailClosed},
		{"sampled 30 s ahead", nil, sampled(after(30 * time.Second)), 1, lessor.BusyHost},
		{
			"sampled 30 s + 1 ms ahead: the clock stepped back", nil, sampled(after(30*time.Second + time.Millisecond)),
			8,
			lessor.BusyFailClosed,
		},
		{"never sampled", nil, lessor.BusyInputs{}, 8, lessor.BusyFailClosed},
		{"configured, and sampled", new(0), sampled(start), 0, lessor.BusySet},
		{"configured, and never sampled", new(10), lessor.BusyInputs{}, 10, lessor.BusySet},
	} {
		rating, source := Busy(nil, c.set, c.in, 0, DefaultBusyPoints(), start)
		if rating != c.rating || source != c.source {
			t.Errorf("%s: busy is %d (%s), want %d (%s)", c.name, rating, source, c.rating, c.source)
		}
	}
}

func TestHighestRatingOfAllNodesCounts(t *testing.T) {
	sampled := lessor.BusyInputs{CPUPercent: 85, SampledAt: start} // rated 3
	for _, c := range []struct {
		name       string
		set        *Override
		configured *int
		in         lessor.BusyInputs
		highest    int
		want       int
		source     lessor.BusySource
	}{
		{"another node is busier", nil, nil, sampled, 5, 5, lessor.BusyHost},
		{"this node is busier", nil, nil, sampled, 2, 3, lessor.BusyHost},
		{"another is busier than is configured here", nil, new(3), sampled, 9, 9, lessor.BusySet},
		{"configured here, and busier", nil, new(7), sampled, 3, 7, lessor.BusySet},
		{"no sample here", nil, nil, lessor.BusyInputs{}, 2, 8, lessor.BusyFailClosed},
		{"no sample here, another is busier", nil, nil, lessor.BusyInputs{}, 9, 9, lessor.BusyFailClosed},
		{"an operator's rating holds on every node", &Override{Value: 1}, new(3), sampled, 9, 1, lessor.BusySet},
	} {
		got, source := Busy(c.set, c.configured, c.in, c.highest, DefaultBusyPoints(), start)
		if got != c.want || source != c.source {
			t.Errorf("%s: %d (%s), want %d (%s)", c.name, got, source, c.want, c.source)
		}
	}
}
