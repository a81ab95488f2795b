package recovery

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// alertFor returns the alert that s calls for, "" for none.
func (m *Monitor) alertFor(s *subject, now moment) lessor.AlertKind {
	if s.watch != nil || s.err != nil && m.held(s) == nil {
		return ""
	}
	return rules.AlertFor(m.evidence(s, now), m.thresholds(), m.isHung(s, now))
}

// updateAlerts raises an alert when a subject crosses a threshold and clears it when that is over.
func (m *Monitor) updateAlerts(ctx context.Context, some []*subject, now moment) error {
	var raised, cleared []lessor.Alert
	changed := map[*subject]lessor.AlertKind{}
	for _, s := range some {
		want := m.alertFor(s, now)
		if want == s.alert {
			continue
		}
		changed[s] = want
		if s.alert != "" {
			cleared = append(cleared, lessor.Alert{Kind: s.alert, Subject: s.folder, TenantID: s.alertOf})
		}
		if want != "" {
			raised = append(raised, lessor.Alert{
				Kind: want, Subject: s.folder, TenantID: s.stored.Tenant, Message: m.message(s, want, now),
			})
		}
	}
	if len(cleared) > 0 {
		if err := m.sched.Clear(ctx, cleared...); err != nil {
			return err
		}
	}
	if len(raised) > 0 {
		if err := m.sched.Raise(ctx, raised...); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for s, kind := range changed {
		s.alert = kind
		if kind != "" {
			s.alertOf = s.stored.Tenant
		}
	}
	return nil
}

// message says what an alert is about, with instants: people read it later, when an age would be wrong.
func (m *Monitor) message(s *subject, kind lessor.AlertKind, now moment) string {
	since := now.wall.Add(-s.age(now)).Time().Format(time.RFC3339)
	switch {
	case kind == lessor.AlertHung:
		return fmt.Sprintf("job %s pulses, but its lease expired for lack of heartbeats; it was asked to stop",
			s.folder)
	case kind == lessor.AlertDead:
		return fmt.Sprintf("job %s is dead: %s, last pulse at %s", s.folder,
			cmp.Or(s.reason, rules.DeathHeartbeatStopped), since)
	case s.vanished():
		return fmt.Sprintf("job %s is stale: its sentinel is missing since %s; its lease lives", s.folder, since)
	case s.record == nil:
		const text = "job %s is stale: its lease was granted at %s and lives, but its sentinel is missing"
		return fmt.Sprintf(text, s.folder, since)
	}
	return fmt.Sprintf("job %s is stale: no pulse since %s", s.folder, since)
}

// ourAlerts are the kinds that a monitor raises and clears.
var ourAlerts = []lessor.AlertKind{lessor.AlertStale, lessor.AlertDead, lessor.AlertHung}

// openAlerts calls take with the open alerts, page by page.
func (m *Monitor) openAlerts(ctx context.Context, take func(context.Context, []lessor.Alert) error) error {
	for cursor := ""; ; {
		page, next, err := m.sched.Alerts(ctx, monitor, lessor.AlertFilter{Open: true, Limit: pageSize, Cursor: cursor})
		if err != nil {
			return err
		}
		if err := take(ctx, page); err != nil || next == "" {
			return err
		}
		cursor = next
	}
}

// startedAfter is the age of a lease at which its job counts as started. A worker that waits for a folder keeps the
// lease for the kill grace.
const startedAfter = time.Minute

// clearFolderAlerts clears the alerts about folders that an earlier attempt held, in any workspace, if the job runs
// again or has ended.
func (m *Monitor) clearFolderAlerts(ctx context.Context, alerts []lessor.Alert) error {
	held := map[lessor.JobID]lessor.Alert{}
	for _, a := range alerts {
		if u, err := lessor.ParseUUID(a.Subject); err == nil && rules.IsFolderHeld(a) {
			held[lessor.JobID{UUID: u}] = a
		}
	}
	if len(held) == 0 {
		return nil
	}
	known, err := m.sched.Watched(ctx, slices.Collect(maps.Keys(held)))
	if err != nil {
		return err
	}
	var over []lessor.Alert
	for id, a := range held {
		w, ok := known[id]
		if !ok || w.Final || w.State == lessor.Running && w.Now.Sub(w.Held.IssuedAt) >= startedAfter {
			over = append(over, a)
		}
	}
	if len(over) == 0 {
		return nil
	}
	return m.sched.Clear(ctx, over...)
}

// adoptAlerts takes over the alerts that an earlier process left open, so that each is cleared when its cause is gone.
// It leaves out alerts about folders and about jobs that run in another node's workspace.
func (m *Monitor) adoptAlerts(ctx context.Context, alerts []lessor.Alert) error {
	open := map[lessor.JobID]lessor.Alert{}
	var ids []lessor.JobID
	for _, a := range alerts {
		u, err := lessor.ParseUUID(a.Subject)
		if err == nil && slices.Contains(ourAlerts, a.Kind) && !rules.IsFolderHeld(a) {
			open[lessor.JobID{UUID: u}] = a
			ids = append(ids, lessor.JobID{UUID: u})
		}
	}
	all := map[lessor.JobID]*storedJob{}
	if err := m.load(ctx, all, ids); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, a := range open {
		if w := all[id]; w == nil || w.Held == nil || rules.SpeaksFor(w.Held, 0, m.workspace.ID()) {
			s := m.subjectOf(id.String(), id)
			s.alert, s.alertOf = a.Kind, a.TenantID
		}
	}
	return nil
}
