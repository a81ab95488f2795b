package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"lessor"
	"lessor/internal/scheduler"
)

// Gauges adds the scheduler's figures to every scrape. If read returns false, the figures are unknown and are left out.
// Call it once.
func (t *Telemetry) Gauges(read func() (scheduler.Figures, bool)) {
	t.registry.MustRegister(gauges{read})
}

// Sentinels adds the verdicts on the commands in a node's workspace to every scrape. Call it once.
func (t *Telemetry) Sentinels(read func() lessor.HeartbeatSummary) {
	t.registry.MustRegister(sentinels{read})
}

// gauges reads the scheduler's figures at a scrape.
type gauges struct {
	read func() (scheduler.Figures, bool)
}

// sentinels reads the verdicts at a scrape.
type sentinels struct {
	read func() lessor.HeartbeatSummary
}

var (
	queueDepth    = describe("queue_depth", "Jobs that are queued and due.", "priority")
	activeLeases  = describe("active_leases", "Live leases.")
	waitingDesc   = describe("waiting_jobs", "Jobs that wait for an answer to their question.")
	unitsDesc     = describe("capacity_units", "Capacity in units.", "kind")
	busyDesc      = describe("busy_rating", "The busy rating, 0 to 10.")
	drainingDesc  = describe("draining", "1 while no leases are granted because of a drain.")
	brakeDesc     = describe("brake_until_seconds", "End of the mass-expiry brake in Unix time; 0 = not active.")
	circuitsDesc  = describe("circuits", "Circuits of definitions that are not closed, by state.", "state")
	alertsDesc    = describe("alerts_open", "Open alerts, by kind; counted up to 1000 in all.", "kind")
	sentinelsDesc = describe("sentinels", "Commands in this node's workspace, by verdict.", "verdict")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("lessor_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		queueDepth, activeLeases, waitingDesc, unitsDesc, busyDesc, drainingDesc, brakeDesc, circuitsDesc, alertsDesc,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector. It reports zero for states that do not occur, so that alert rules can clear.
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
	set(waitingDesc, s.Waiting)
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
		lessor.AlertMassExpiry, lessor.AlertCircuitOpen, lessor.AlertNoWorker, lessor.AlertStale, lessor.AlertDead,
		lessor.AlertHung, lessor.AlertMissedTicks, lessor.AlertJobFailed, lessor.AlertStoreWentBack,
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
