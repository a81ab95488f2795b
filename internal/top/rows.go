package top

import (
	"fmt"
	"strings"
	"time"

	"lessor"
	"lessor/internal/table"
)

// row is one line of a tab.
type row struct {
	key    string // stays the same from snapshot to snapshot
	job    *lessor.JobID
	cells  []string
	urgent bool
}

var headers = [tabs][]string{
	leasesTab:  {"LEFT", "", "JOB", "TYPE~", "WORKER~", "BEAT?", "HELD?", "UNITS?"},
	queueTab:   {"JOB", "TYPE~", "PRIORITY", "WAITS", "ATTEMPT?", "UNITS?", "TENANT?"},
	workersTab: {"WORKER~", "SEEN", "LEASES", "UNITS", "TYPES~", "AGENT?"},
	alertsTab:  {"KIND", "SUBJECT~", "RAISED", "MESSAGE~"},
}

// rows returns the rows of the open tab that match the filter.
func (m Model) rows() (rows []row) {
	s := &m.snap
	switch m.tab {
	case leasesTab:
		for i := range s.Leases {
			rows = append(rows, leaseRow(&s.Leases[i], s.At))
		}
	case queueTab:
		for i := range s.Queue {
			rows = append(rows, jobRow(&s.Queue[i], s.At))
		}
	case workersTab:
		for i := range s.Workers {
			rows = append(rows, workerRow(&s.Workers[i], s.At))
		}
	case alertsTab:
		for i := range s.Alerts {
			a := &s.Alerts[i]
			cells := []string{string(a.Kind), a.Subject, table.Span(s.At.Sub(a.RaisedAt)), a.Message}
			rows = append(rows, row{key: a.ID.String(), cells: cells, urgent: true})
		}
	}
	matching := rows[:0]
	for _, r := range rows {
		for i := range r.cells {
			r.cells[i] = table.Clean(r.cells[i])
		}
		if strings.Contains(strings.ToLower(strings.Join(r.cells, " ")), strings.ToLower(m.filter)) {
			matching = append(matching, r)
		}
	}
	return matching
}

// leaseRow marks a lease as urgent when less than a fifth of its ttl is left: its worker has missed heartbeats.
func leaseRow(l *lessor.Lease, now lessor.Instant) row {
	left, ttl := max(0, l.ExpiresAt.Sub(now)), time.Duration(l.TTLMS)*time.Millisecond
	return row{
		key: l.ID.String(), job: &l.JobID, urgent: left < ttl/5,
		cells: []string{
			table.Span(left), bar(float64(left)/max(float64(ttl), 1), 10), l.JobID.String(), l.Type, l.WorkerID,
			beat(l, now), table.Span(now.Sub(l.IssuedAt)), fmt.Sprint(l.CapacityUnits),
		},
	}
}

func beat(l *lessor.Lease, now lessor.Instant) string {
	if l.LastHeartbeat == 0 {
		return "none"
	}
	return table.Span(now.Sub(l.LastHeartbeat))
}

func jobRow(j *lessor.Job, now lessor.Instant) row {
	tenant := ""
	if !j.TenantID.IsZero() {
		tenant = j.TenantID.String()
	}
	return row{key: j.ID.String(), job: &j.ID, cells: []string{
		j.ID.String(), j.Type, j.Priority.String(), table.Span(now.Sub(j.UpdatedAt)),
		fmt.Sprintf("%d/%d", j.Attempt, j.MaxAttempts), fmt.Sprint(j.RequestedUnits), tenant,
	}}
}

func workerRow(w *lessor.Worker, now lessor.Instant) row {
	types := strings.Join(w.Types, ",")
	if types == "" {
		types = "all"
	}
	return row{key: w.WorkerID, cells: []string{
		w.WorkerID, table.Span(now.Sub(w.LastSeenAt)), fmt.Sprint(w.Leases), fmt.Sprint(w.Units), types, w.Agent,
	}}
}

// bar draws a share as width characters.
func bar(share float64, width int) string {
	full := int(min(max(share, 0), 1)*float64(width) + 0.5)
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}
