package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"lessor"
	"lessor/internal/scheduler"
)

// Gauges shows the scheduler's figures with every scrape. read returns false when they are not known; then they are left
// out rather than shown as zero. To be called once.
func (t *Telemetry) Gauges(read func() (scheduler.Figures, bool)) {
	t.registry.MustRegister(gauges{read})
}

// Sentinels shows the verdicts on the commands in a node's workspace with every scrape. To be called once.
func (t *Telemetry) Sentinels(read func() lessor.HeartbeatSummary) {
	t.registry.MustRegister(sentinels{read})
}

// gauges reads the scheduler's figures when somebody looks.
type gauges struct {
	read func() (scheduler.Figures, bool)
}

// sentinels reads the verdicts when somebody looks.
type sentinels struct {
	read func() lessor.HeartbeatSummary
}

var (
	queueDepth    = prometheus.NewDesc("lessor_queue_depth", "Jobs that are queued and due.", []string{"priority"}, nil)
	activeLeases  = prometheus.NewDesc("lessor_active_leases", "Live leases.", nil, nil)
	unitsDesc     = prometheus.NewDesc("lessor_capacity_units", "Capacity in units.", []string{"kind"}, nil)
	busyDesc      = prometheus.NewDesc("lessor_busy_rating", "The busy rating, 0 to 10.", nil, nil)
	drainingDesc  = prometheus.NewDesc("lessor_draining", "1 while no leases are granted because of a drain.", nil, nil)
	brakeDesc     = prometheus.NewDesc("lessor_brake_until_seconds", "Until when the mass-expiry brake holds, in Unix time; 0 = not pulled.", nil, nil)
	circuitsDesc  = prometheus.NewDesc("lessor_circuits", "Circuits of definitions that are not closed, by state.", []string{"state"}, nil)
	alertsDesc    = prometheus.NewDesc("lessor_alerts_open", "Alerts that are open, by kind; counted up to 1000 in all.", []string{"kind"}, nil)
	sentinelsDesc = prometheus.NewDesc("lessor_sentinels", "Commands in this node's workspace, by the verdict on their sentinels.", []string{"verdict"}, nil)
)

// Describe implements prometheus.Collector.
func (gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queueDepth, activeLeases, unitsDesc, busyDesc, drainingDesc, brakeDesc, circuitsDesc, alertsDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector. What can be open is shown as zero when it is not, so that alert rules see it clear.
func (g gauges) Collect(out chan<- prometheus.Metric) {
	f, ok := g.read()
	if !ok {
		return
	}
	s := f.Status
	set := setter(out)
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
	for _, state := range []lessor.CircuitState{lessor.CircuitOpen, lessor.CircuitHalfOpen} {
		set(circuitsDesc, f.Circuits[state], string(state))
	}
	for _, kind := range []lessor.AlertKind{
		lessor.AlertMassExpiry, lessor.AlertCircuitOpen, lessor.AlertNoWorker, lessor.AlertStale, lessor.AlertDead, lessor.AlertHung,
		lessor.AlertMissedTicks, lessor.AlertJobFailed,
		lessor.AlertStoreWentBack,
	} {
		set(alertsDesc, f.Alerts[kind], string(kind))
	}
}

// Describe implements prometheus.Collector.
func (sentinels) Describe(out chan<- *prometheus.Desc) { out <- sentinelsDesc }

// Collect implements prometheus.Collector.
func (s sentinels) Collect(out chan<- prometheus.Metric) {
	sum, set := s.read(), setter(out)
	set(sentinelsDesc, sum.Fresh, string(lessor.HeartbeatFresh))
	set(sentinelsDesc, sum.Stale, string(lessor.HeartbeatStale))
	set(sentinelsDesc, sum.Dead, string(lessor.HeartbeatDead))
	set(sentinelsDesc, sum.Invalid, "invalid")
}

func setter(out chan<- prometheus.Metric) func(d *prometheus.Desc, v int, labels ...string) {
	return func(d *prometheus.Desc, v int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
}
