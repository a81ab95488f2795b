package cli

import (
	"fmt"
	"slices"
	"time"

	"lessor/internal/table"
)

// benchReport is printed after a bench. Times are in milliseconds.
type benchReport struct {
	Jobs        int         `json:"jobs"`
	Concurrency int         `json:"concurrency"`
	Seconds     float64     `json:"seconds"`
	PerSecond   float64     `json:"jobs_per_second"`
	Denials     int64       `json:"denials"`
	Calls       []benchCall `json:"calls"`
}

type benchCall struct {
	Call  string  `json:"call"`
	Count int     `json:"count"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

func (a *app) printBench(b *bench, f benchFlags, took time.Duration) error {
	r := benchReport{
		Jobs: f.jobs, Concurrency: f.concurrency, Seconds: took.Seconds(),
		PerSecond: float64(f.jobs) / took.Seconds(), Denials: b.denials.Load(),
	}
	for _, name := range benchCalls {
		r.Calls = append(r.Calls, summarize(name, b.took[name]))
	}
	return display(a, r, func(t *table.Table, r benchReport, _ time.Time) {
		t.Row(fmt.Sprintf("%d jobs in %.1f s: %.0f a second, by %d callers; %d requests were denied and repeated",
			r.Jobs, r.Seconds, r.PerSecond, r.Concurrency, r.Denials))
		t.Head("CALL", "COUNT", "P50", "P95", "P99", "MAX")
		ms := func(v float64) string { return fmt.Sprintf("%.1fms", v) }
		for _, c := range r.Calls {
			t.Row(c.Call, fmt.Sprint(c.Count), ms(c.P50), ms(c.P95), ms(c.P99), ms(c.Max))
		}
	})
}

// summarize returns the percentiles of one kind of call. It sorts took.
func summarize(name string, took []time.Duration) benchCall {
	c := benchCall{Call: name, Count: len(took)}
	if len(took) == 0 {
		return c
	}
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[min(int(share*float64(len(took))), len(took)-1)]) / float64(time.Millisecond)
	}
	c.P50, c.P95, c.P99, c.Max = at(0.5), at(0.95), at(0.99), at(1)
	return c
}
