// Package telemetry tells what the server does: Prometheus metrics for people, spans for their collector, and the last minute
// of the HTTP API for the busy rating.
//
// Every label has a bounded set of values: route patterns, status codes, denial codes, outcomes. Nothing that callers
// choose (tenants, job types, workers) becomes one.
//
// Called by httpapi (Begin, Traces), by the scheduler (Observe) and by whoever wires a node (Gauges, Sentinels, APIWindow). It decides
// nothing and logs nothing.
package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Telemetry holds one node's metrics, in a registry of their own so that several nodes can live in one process.
type Telemetry struct {
	registry *prometheus.Registry
	http     httpMetrics
	sched    schedulerMetrics
	window   window
}

// New returns metrics that all stand at zero.
func New() *Telemetry {
	t := &Telemetry{registry: prometheus.NewRegistry(), http: newHTTPMetrics(), sched: newSchedulerMetrics()}
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	t.registry.MustRegister(t.http.all()...)
	t.registry.MustRegister(t.sched.all()...)
	return t
}

// Handler shows the metrics in Prometheus' format.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}
