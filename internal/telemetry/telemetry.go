// Package telemetry measures the server: Prometheus metrics, spans for a collector, and the last minute of the HTTP API
// for the busy rating.
//
// Every label has a bounded set of values: route patterns, status codes, denial codes, outcomes. A value that callers
// choose (tenant, job type, worker) never becomes a label.
//
// httpapi calls Begin and Traces, the scheduler Observe, and node Gauges, Sentinels and APIWindow. The package decides
// nothing and logs nothing.
package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Telemetry holds the metrics of one node, in their own registry, because a process may have several nodes.
type Telemetry struct {
	registry *prometheus.Registry
	http     httpMetrics
	sched    schedulerMetrics
	window   window
}

// New returns metrics that are all zero.
func New() *Telemetry {
	t := &Telemetry{registry: prometheus.NewRegistry(), http: newHTTPMetrics(), sched: newSchedulerMetrics()}
	t.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	t.registry.MustRegister(t.http.all()...)
	t.registry.MustRegister(t.sched.all()...)
	return t
}

// Handler serves the metrics in the format of Prometheus.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}
