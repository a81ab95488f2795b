package dashboard

import (
	"fmt"
	"net/url"
	"time"

	"lessor"
	"lessor/internal/token"
)

// overviewPage is the state of the system on one screen. Status and charts are about all tenants; they are nil for a
// visitor who is restricted to one.
type overviewPage struct {
	Status     *lessor.Status
	Queue      []depth
	Waiting    int
	Live       int // leases
	Leases     []stateCount
	Throughput *chart
	Depth      *chart
	Alerts     []alertRow
	CanAct     bool // the visitor may acknowledge alerts
	CanDrain   bool
	Tenant     *lessor.Tenant // the tenant that the visitor is restricted to
	Newest     []lessor.Job
	Pressure   []pressure
}

// alertRow is an alert and the page of what it is about, "" if there is none.
type alertRow struct {
	lessor.Alert
	About string
}

// depth is the queue of one priority.
type depth struct {
	Priority string
	Jobs     int
	Percent  float64
}

// stateCount is the number of leases in a state.
type stateCount struct {
	State string
	Count int
	Note  string
}

// pressure is one input of the busy rating.
type pressure struct {
	Name, Value string
}

const (
	overviewAlerts = 20
	overviewJobs   = 8
	// leasesRead bounds the leases whose states the overview counts.
	leasesRead = 200
)

// alerts lists the open alerts, each with the page of what it is about.
func (v *visit) alerts() (rows []alertRow, err error) {
	ctx := v.r.Context()
	open := lessor.AlertFilter{Open: true, Limit: overviewAlerts}
	list, _, err := v.scheduler.Alerts(ctx, v.caller, open)
	for _, a := range list {
		row := alertRow{Alert: a}
		switch a.Kind {
		case lessor.AlertJobFailed:
			row.About = "/jobs?" + url.Values{"state": {string(lessor.Failed)}, "type": {a.Subject}}.Encode()
		case lessor.AlertStale, lessor.AlertDead, lessor.AlertHung:
			id, malformed := lessor.ParseJobID(a.Subject)
			if _, unknown := v.scheduler.Job(ctx, v.caller, id); malformed == nil && unknown == nil {
				row.About = "/jobs/" + id.String()
			}
		case lessor.AlertCircuitOpen, lessor.AlertNoWorker, lessor.AlertMissedTicks:
			row.About = "/schedules/" + url.PathEscape(a.Subject)
		case lessor.AlertMassExpiry:
			row.About = "/leases"
		case lessor.AlertStoreWentBack:
		}
		rows = append(rows, row)
	}
	return rows, err
}

func (v *visit) acknowledge() error {
	u, err := lessor.ParseUUID(v.r.PathValue("id"))
	if err != nil {
		return lessor.ErrAlertNotFound
	}
	alert, err := v.scheduler.Acknowledge(v.r.Context(), v.caller, lessor.AlertID{UUID: u})
	if err != nil {
		return err
	}
	return v.back("/", outcome{"acknowledged", alert.Message, "/#alert-" + alert.ID.String()})
}

func (v *visit) overview() (view, error) {
	ctx := v.r.Context()
	p := overviewPage{CanAct: v.can(token.Schedule), CanDrain: v.can(token.Drain)}
	var err error
	if p.Alerts, err = v.alerts(); err != nil {
		return view{}, err
	}
	if v.can(token.ReadJobs) {
		if p.Newest, _, err = v.scheduler.Jobs(ctx, v.caller, lessor.JobFilter{Limit: overviewJobs}); err != nil {
			return view{}, err
		}
	}
	if v.caller.Tenant != nil {
		t, err := v.scheduler.Tenant(ctx, v.caller, *v.caller.Tenant)
		p.Tenant = &t
		return view{"Overview", "overview", p}, err
	}
	st, err := v.scheduler.Status(ctx, v.caller)
	if err != nil {
		return view{}, err
	}
	p.fill(st)
	if p.Leases, p.Live, err = v.leaseStates(st.ActiveLeases); err != nil {
		return view{}, err
	}
	hour := v.history.last(time.Now())
	through, depth := throughput(hour), depths(hour, p.Waiting)
	p.Throughput, p.Depth = &through, &depth
	return view{"Overview", "overview", p}, nil
}

func (p *overviewPage) fill(st lessor.Status) {
	p.Status = &st
	q := st.QueueDepth
	p.Waiting = q.High + q.Normal + q.Low + q.Background
	for i, n := range []int{q.High, q.Normal, q.Low, q.Background} {
		p.Queue = append(p.Queue, depth{lessor.Priority(i).String(), n, share(n, p.Waiting)})
	}
	p.Pressure = pressures(st.Inputs)
}

// leaseStates counts the newest leases by state: with heartbeats, without one yet, or near their end. It returns the
// number of live leases too, which is the sum if it has read them all.
func (v *visit) leaseStates(live int) ([]stateCount, int, error) {
	if !v.can(token.ReadLeases) {
		return nil, live, nil
	}
	list, next, err := v.scheduler.Leases(v.r.Context(), v.caller, "", leasesRead, "")
	if err != nil {
		return nil, 0, err
	}
	states, now := map[string]int{}, lessor.At(time.Now())
	for _, l := range list {
		states[newLeaseRow(l, now).Verdict]++
	}
	note := "of the newest " + count(len(list))
	if next == "" {
		note, live = "", len(list)
	}
	var counts []stateCount
	for _, state := range []string{running, leased, late} {
		counts = append(counts, stateCount{state, states[state], note})
	}
	return counts, live, nil
}

// pressures formats the measurements behind the busy rating.
func pressures(in lessor.BusyInputs) []pressure {
	if in.SampledAt.IsZero() {
		return nil
	}
	return []pressure{
		{"CPU", fmt.Sprintf("%.0f %%", in.CPUPercent)},
		{"memory", fmt.Sprintf("%.0f %%", in.MemoryPercent)},
		{"API p95", fmt.Sprintf("%.0f ms", in.P95MS)},
		{"API 5xx", fmt.Sprintf("%.1f %%", in.ErrorShare*100)},
		{"in flight", fmt.Sprint(in.InFlight)},
	}
}
