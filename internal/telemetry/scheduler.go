package telemetry

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"lessor"
	"lessor/internal/fault"
	"lessor/internal/scheduler"
)

type schedulerMetrics struct {
	submitted   prometheus.Counter
	granted     prometheus.Counter
	waited      prometheus.Histogram
	denied      *prometheus.CounterVec
	beats       prometheus.Counter
	ended       *prometheus.CounterVec
	took        *prometheus.HistogramVec
	ticks       *prometheus.CounterVec
	massExpiry  prometheus.Counter
	commitCalls prometheus.Histogram
	commitTook  prometheus.Histogram
	storeErrors *prometheus.CounterVec
	faults      *prometheus.CounterVec
}

// The values of labels.
var (
	denialCodes = []string{
		string(lessor.NoCapacity), string(lessor.NextJobTooLarge), string(lessor.NoEligibleJob),
		string(lessor.Draining),
	}
	endOutcomes  = []string{"completed", "failed", "expired", "released", "cancelled", "waiting"}
	tickOutcomes = []string{
		string(lessor.TickFired), string(lessor.TickCaughtUp), string(lessor.TickSkipped),
		string(lessor.TickCircuitOpen), string(lessor.TickMissed),
	}
	storeErrors = []struct {
		err  error
		kind string
	}{
		{scheduler.ErrFull, "full"},
		{scheduler.ErrUnreachable, "unreachable"},
		{scheduler.ErrUnknownOutcome, "unknown_outcome"},
		{scheduler.ErrBroken, "broken"},
		{scheduler.ErrBadCall, "bad_call"},
		{scheduler.ErrMoved, "moved"},
	}
)

func newSchedulerMetrics() schedulerMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "lessor", Name: name, Help: help})
	}
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Namespace: "lessor", Name: name, Help: help, Buckets: buckets}
	}
	// Every label value starts with zero: Prometheus sees no increase in a series that appears with its first event.
	vec := func(name, help, label string, values ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "lessor", Name: name, Help: help},
			[]string{label})
		for _, value := range values {
			v.WithLabelValues(value)
		}
		return v
	}
	return schedulerMetrics{
		submitted: counter("jobs_submitted_total", "Jobs that were accepted."),
		granted:   counter("leases_granted_total", "Leases that were granted."),
		waited: prometheus.NewHistogram(histogram("queue_wait_seconds", "Time from queued to granted, for each grant.",
			prometheus.ExponentialBuckets(0.001, 4, 12))), // 1 ms to 70 min
		denied: vec("lease_denials_total", "Lease requests that were denied, by code.", "code", denialCodes...),
		beats:  counter("heartbeats_total", "Heartbeats that extended a lease."),
		ended:  vec("leases_ended_total", "Leases that ended, by the attempt's outcome.", "outcome", endOutcomes...),
		took: prometheus.NewHistogramVec(histogram(
			"attempt_duration_seconds", "Time from the grant to the end of the attempt, by outcome.",
			prometheus.ExponentialBuckets(0.01, 4, 12)), []string{"outcome"}), // 10 ms to 12 h, the longest ttl
		ticks:      vec("ticks_total", "Ticks of schedules, by outcome.", "outcome", tickOutcomes...),
		massExpiry: counter("mass_expiry_brakes_total", "Number of times that the mass-expiry brake was applied."),
		commitCalls: prometheus.NewHistogram(histogram("commit_calls", "Calls answered by one commit.",
			prometheus.ExponentialBuckets(1, 2, 12))), // 1 to 2048, the most that one commit takes
		commitTook: prometheus.NewHistogram(histogram("commit_duration_seconds", "Time of one commit.",
			prometheus.ExponentialBuckets(0.000125, 2, 15))), // 0.125 ms (fast flash) to 2 s (a stalled disk)
		storeErrors: vec("store_errors_total", "Commits that failed, by kind.", "kind", errorKinds()...),
		faults:      vec("faults_total", "Panics that were caught, by place.", "place", fault.Places()...),
	}
}

func (m *schedulerMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.submitted, m.granted, m.waited, m.denied, m.beats, m.ended, m.took, m.ticks, m.massExpiry,
		m.commitCalls, m.commitTook, m.storeErrors, m.faults,
	}
}

// Observe counts the results of one commit. A scheduler calls it as its Config.Observe.
func (t *Telemetry) Observe(s scheduler.Stats) {
	m := &t.sched
	m.commitCalls.Observe(float64(s.Calls))
	m.commitTook.Observe(s.Took.Seconds())
	if s.Err != nil {
		m.storeErrors.WithLabelValues(kindOf(s.Err)).Inc()
		return
	}
	m.submitted.Add(float64(s.Submitted))
	m.granted.Add(float64(s.Granted))
	m.beats.Add(float64(s.Beats))
	for code, n := range s.Denied {
		m.denied.WithLabelValues(string(code)).Add(float64(n))
	}
	for _, d := range s.Waited {
		m.waited.Observe(d.Seconds())
	}
	var ended prometheus.Counter
	var took prometheus.Observer
	for i, e := range s.Ended {
		if i == 0 || e.Outcome != s.Ended[i-1].Outcome { // finding the series costs more than counting
			ended, took = m.ended.WithLabelValues(string(e.Outcome)), m.took.WithLabelValues(string(e.Outcome))
		}
		ended.Inc()
		took.Observe(e.Took.Seconds())
	}
	for outcome, n := range s.Ticks {
		m.ticks.WithLabelValues(string(outcome)).Add(float64(n))
	}
	if s.MassExpiry {
		m.massExpiry.Inc()
	}
}

// Fault counts a panic that was caught at a place.
func (t *Telemetry) Fault(place string) { t.sched.faults.WithLabelValues(place).Inc() }

// otherKind is the kind of errors that are not in the table.
const otherKind = "other"

// kindOf names the kind of a store's error.
func kindOf(err error) string {
	for _, k := range storeErrors {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	return otherKind
}

func errorKinds() []string {
	kinds := []string{otherKind}
	for _, k := range storeErrors {
		kinds = append(kinds, k.kind)
	}
	return kinds
}
