package recovery

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// maxScanAge is the age at which a scan is too old for a report. Many readers must not cause many scans.
const maxScanAge = time.Second

// Snapshot is what a monitor knew at one moment. Reports made from one snapshot agree.
type Snapshot struct {
	node    string
	entries []entry // in the order of their folders
	results results
	last    lessor.LastScan
}

// entry is one subject as it was judged.
type entry struct {
	lessor.SentinelShown // its fields, if there is a file
	job                  lessor.JobID
	file                 bool
	verdict              rules.Verdict // "" = none
	age                  time.Duration
	fence                int64
	live                 bool         // it speaks for a live lease
	back                 bool         // that lease was reattached
	state                lessor.State // of the job; "" = the store does not know it
	watchedTo            lessor.Instant
}

// Snapshot scans the workspace, unless that was just done, and judges what is there now.
func (m *Monitor) Snapshot(ctx context.Context) (Snapshot, error) {
	m.mu.Lock()
	took := time.Duration(m.last.DurationMS) * time.Millisecond
	stale := m.lastAt.IsZero() || time.Since(m.lastAt) > max(maxScanAge, 10*took)
	m.mu.Unlock()
	if stale {
		if err := m.Scan(ctx); err != nil {
			return Snapshot{}, err
		}
	}
	return m.Known(), nil
}

// Scan checks the whole workspace now.
func (m *Monitor) Scan(ctx context.Context) error { return m.inRun(ctx, m.scan) }

// Known judges what the last check found.
func (m *Monitor) Known() Snapshot {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	snap := Snapshot{node: m.cfg.Node, results: m.results, last: m.last, entries: make([]entry, 0, len(m.subjects))}
	snap.results.all = slices.Clone(m.results.all)
	for _, s := range m.subjects {
		snap.entries = append(snap.entries, m.entry(s, now))
	}
	slices.SortFunc(snap.entries, func(a, b entry) int { return strings.Compare(a.JobID, b.JobID) })
	return snap
}

func (m *Monitor) entry(s *subject, now moment) entry {
	e := entry{
		job: s.job, file: s.record != nil || s.err != nil, verdict: m.verdict(s, now), age: s.age(now),
		fence: s.fence(), state: s.stored.State, SentinelShown: lessor.SentinelShown{
			JobID: s.folder, WorkspacePath: pathOf(m.workspace, s.folder), Known: s.stored.known,
			Valid: s.record != nil,
		},
	}
	if h := m.held(s); h != nil {
		e.live, e.fence, e.back = true, h.Turn.Fence, h.Reattached > 0
	}
	if s.watch != nil {
		e.watchedTo = s.watch.until
	}
	if s.err != nil {
		e.Error = new(s.err.Error())
	}
	if r := s.record; r != nil {
		e.LastHeartbeat, e.StartedAt = r.LastHeartbeat, r.StartedAt
		e.AgeSeconds, e.Status = new(seconds(e.age)), new(lessor.HeartbeatStatus(e.verdict))
		e.SessionID, e.AgentEngine, e.Hung = given(r.SessionID), given(r.AgentEngine), m.isHung(s, now)
	}
	return e
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// Heartbeats shows the verdict on every command.
func (s Snapshot) Heartbeats() lessor.JobHeartbeats {
	r := lessor.JobHeartbeats{Jobs: []lessor.JobHeartbeat{}, Node: s.node}
	for _, e := range s.entries {
		if e.file && !e.Valid {
			r.Summary.Invalid++
		}
		if e.verdict == "" {
			continue
		}
		r.Summary.Total++
		switch e.verdict {
		case rules.Fresh:
			r.Summary.Fresh++
		case rules.Stale:
			r.Summary.Stale++
		case rules.Dead:
			r.Summary.Dead++
		}
		r.Jobs = append(r.Jobs, lessor.JobHeartbeat{
			JobID: e.job, LastHeartbeat: e.LastHeartbeat, AgeSeconds: seconds(e.age),
			Status: lessor.HeartbeatStatus(e.verdict), AgentEngine: e.AgentEngine,
		})
	}
	return r
}

// Stale shows the stale commands of jobs that have not ended.
func (s Snapshot) Stale() lessor.StaleJobs {
	r := lessor.StaleJobs{StaleJobs: []lessor.StaleJob{}, Node: s.node}
	for _, e := range s.entries {
		if e.verdict == rules.Stale && e.state != lessor.Completed && e.state != lessor.Cancelled {
			r.StaleJobs = append(r.StaleJobs, lessor.StaleJob{
				JobID: e.job, LastHeartbeat: e.LastHeartbeat, AgeMinutes: math.Floor(e.age.Minutes()*100) / 100,
				WorkspacePath: e.WorkspacePath, RecommendedAction: "investigate",
			})
		}
	}
	return r
}

// Sentinels shows every sentinel file.
func (s Snapshot) Sentinels() lessor.Sentinels {
	r := lessor.Sentinels{Sentinels: []lessor.SentinelShown{}, Node: s.node}
	for _, e := range s.entries {
		if e.file {
			r.Sentinels = append(r.Sentinels, e.SentinelShown)
		}
	}
	return r
}

// Status shows the commands that were found at the start and since, and their outcomes.
func (s Snapshot) Status() lessor.RecoveryStatus {
	r := lessor.RecoveryStatus{
		Recovery: lessor.RecoveryProgress{
			State: s.results.state(), StartedAt: s.results.startedAt, CompletedAt: s.results.endedAt,
		},
		Jobs: []lessor.RecoveredJob{}, Node: s.node,
	}
	became := make(map[lessor.JobID]result, len(s.results.all))
	for _, one := range s.results.all {
		became[one.job] = one
	}
	for _, e := range s.entries {
		status := e.status(became)
		if e.verdict == "" || status == "" {
			continue
		}
		r.Jobs = append(r.Jobs, lessor.RecoveredJob{
			JobID: e.job, Status: status, LastHeartbeat: e.LastHeartbeat, AgeSeconds: new(seconds(e.age)),
			WatchDeadline: e.watchedTo,
		})
		delete(became, e.job)
	}
	for _, one := range became {
		r.Jobs = append(r.Jobs, lessor.RecoveredJob{JobID: one.job, Status: one.status, LastHeartbeat: one.beat})
	}
	slices.SortFunc(r.Jobs, func(a, b lessor.RecoveredJob) int {
		return cmp.Compare(a.JobID.String(), b.JobID.String())
	})
	for _, j := range r.Jobs {
		r.Summary.Total++
		switch j.Status {
		case lessor.RecoveredWatching:
			r.Summary.Watching++
		case lessor.RecoveredReattached:
			r.Summary.Reattached++
		case lessor.RecoveredDead:
			r.Summary.Dead++
		}
	}
	return r
}

// status returns the outcome of the attempt that an entry is about, "" for a job that was completed or cancelled: it
// needs no recovery.
func (e entry) status(became map[lessor.JobID]result) lessor.RecoveredStatus {
	one, ok := became[e.job]
	switch {
	case e.watchedTo != 0:
		return lessor.RecoveredWatching
	case ok && one.fence == e.fence && (e.live || one.status == lessor.RecoveredDead):
		return one.status
	case e.live && e.back:
		return lessor.RecoveredReattached
	case e.state == lessor.Completed || e.state == lessor.Cancelled:
		return ""
	case e.verdict == rules.Dead && !e.live:
		return lessor.RecoveredDead
	case e.live || e.state == "":
		return lessor.RecoveredRunning
	}
	return lessor.RecoveredFailed
}

// Metrics counts what was recovered since the start.
func (s Snapshot) Metrics() lessor.RecoveryMetrics {
	r := lessor.RecoveryMetrics{
		TotalJobs: s.Status().Summary.Total, ReattachedCount: s.results.reattached, FailedCount: s.results.dead,
		LastScan: s.last, Node: s.node,
	}
	if n := s.results.reattached + s.results.dead; n > 0 {
		r.SuccessRate = new(float64(s.results.reattached) / float64(n))
	}
	if n := s.results.reattached; n > 0 {
		r.AverageReattachSeconds = new(math.Round(s.results.took.Seconds()/float64(n)*1000) / 1000)
	}
	return r
}

// Cleanups shows the folders that are removed because their command is dead, newest first.
func (m *Monitor) Cleanups() lessor.Cleanups {
	return lessor.Cleanups{Cleanups: m.cleaner.list(), Node: m.cfg.Node}
}
