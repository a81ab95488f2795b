// Package telemetry counts what the server does: Prometheus metrics for people, and the last minute of the HTTP API for
// the busy rating.
//
// Every label has a bounded set of values: route patterns, status codes, denial codes, outcomes. Nothing that callers
// choose (tenants, job types, workers) becomes one.
//
// Called by httpapi (Begin), by the scheduler (Observe) and by whoever wires a node (Gauges, APIWindow). It decides
// nothing and logs nothing.
package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lessor"
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

// Gauges shows the scheduler's figures with every scrape. read returns false when they are not known; then they are left
// out rather than shown as zero. To be called once.
func (t *Telemetry) Gauges(read func() (lessor.Status, bool)) {
	t.registry.MustRegister(gauges{read: read})
}

// gauges reads the scheduler's figures when somebody looks.
type gauges struct {
	read func() (lessor.Status, bool)
}

var (
	queueDepth    = prometheus.NewDesc("lessor_queue_depth", "Jobs that are queued and due.", []string{"priority"}, nil)
	activeLeases  = prometheus.NewDesc("lessor_active_leases", "Live leases.", nil, nil)
	unitsDesc     = prometheus.NewDesc("lessor_capacity_units", "Capacity in units.", []string{"kind"}, nil)
	busyDesc      = prometheus.NewDesc("lessor_busy_rating", "The busy rating, 0 to 10.", nil, nil)
	drainingDesc  = prometheus.NewDesc("lessor_draining", "1 while no leases are granted because of a drain.", nil, nil)
	brakeDesc     = prometheus.NewDesc("lessor_brake_until_seconds", "Until when the mass-expiry brake holds, in Unix time; 0 = not pulled.", nil, nil)
	allGaugeDescs = []*prometheus.Desc{queueDepth, activeLeases, unitsDesc, busyDesc, drainingDesc, brakeDesc}
)

// Describe implements prometheus.Collector.
func (gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range allGaugeDescs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(out chan<- prometheus.Metric) {
	s, ok := g.read()
	if !ok {
		return
	}
	set := func(d *prometheus.Desc, v int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	set(queueDepth, s.QueueDepth.High, lessor.High.String())
	set(queueDepth, s.QueueDepth.Normal, lessor.Normal.String())
	set(queueDepth, s.QueueDepth.Low, lessor.Low.String())
	set(queueDepth, s.QueueDepth.Background, lessor.Background.String())
	set(activeLeases, s.ActiveLeases)
	set(unitsDesc, s.TotalUnits, "total")
	set(unitsDesc, s.ReserveUnits, "reserve")
	set(unitsDesc, s.UsableUnits, "usable")
	set(unitsDesc, s.LeasedUnits, "leased")
	set(unitsDesc, s.AvailableUnits, "available")
	set(busyDesc, s.Busy)
	draining := 0
	if s.Draining {
		draining = 1
	}
	set(drainingDesc, draining)
	out <- prometheus.MustNewConstMetric(brakeDesc, prometheus.GaugeValue, float64(s.BrakeUntil)/1000)
}
