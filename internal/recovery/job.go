package recovery

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// checkJob checks one job, whether or not it was known before.
func (m *Monitor) checkJob(ctx context.Context, id lessor.JobID) error {
	m.mu.Lock()
	s := m.subjectOf(id.String(), id)
	m.mu.Unlock()
	return m.checkFolders(ctx, []*subject{s})
}

// Health checks one job and shows what the workspace says about it.
func (m *Monitor) Health(ctx context.Context, id lessor.JobID) (lessor.JobHealth, error) {
	if err := m.inRun(ctx, func(ctx context.Context) error { return m.checkJob(ctx, id) }); err != nil {
		return lessor.JobHealth{}, err
	}
	known, err := m.sched.Watched(ctx, []lessor.JobID{id})
	if err != nil {
		return lessor.JobHealth{}, err
	}
	h := lessor.JobHealth{JobID: id, HeartbeatStatus: lessor.HeartbeatUnknown, Node: m.cfg.Node}
	session := id.String()
	m.mu.Lock()
	if s := m.subjects[id.String()]; s != nil {
		e := m.entry(s, m.now())
		h.SentinelFileExists, h.LastHeartbeat, h.AgeSeconds = e.file, e.sentinel.LastHeartbeat, e.sentinel.AgeSeconds
		if e.sentinel.Status != nil {
			h.HeartbeatStatus = *e.sentinel.Status
		}
		if e.sentinel.SessionID != nil {
			session = *e.sentinel.SessionID
		}
	}
	m.mu.Unlock()
	if _, ok := known[id]; !ok && !h.SentinelFileExists {
		return lessor.JobHealth{}, lessor.ErrJobNotFound
	}
	f, err := m.workspace.Folder(id)
	if err != nil {
		return h, nil // there is no folder of ours
	}
	defer func() { _ = f.Close() }() // it was only read
	h.WorkspaceExists = true
	h.SessionDataExists, err = f.HasSessionData(session)
	return h, err
}

// MarkDead gives up a job for an operator: its attempt fails, the command is asked to stop, and its folder is removed.
func (m *Monitor) MarkDead(ctx context.Context, c scheduler.Caller, id lessor.JobID) (lessor.JobHealth, error) {
	err := m.inRun(ctx, func(ctx context.Context) error {
		if err := m.checkJob(ctx, id); err != nil {
			return err
		}
		return m.markDead(ctx, c, id)
	})
	if err != nil {
		return lessor.JobHealth{}, err
	}
	return m.Health(ctx, id)
}

func (m *Monitor) markDead(ctx context.Context, c scheduler.Caller, id lessor.JobID) error {
	known := map[lessor.JobID]*storedJob{}
	if err := m.load(ctx, known, []lessor.JobID{id}); err != nil {
		return err
	}
	s, job := m.subjects[id.String()], known[id]
	if job == nil {
		job = new(storedJob)
	}
	switch {
	case s == nil && !job.known:
		return lessor.ErrJobNotFound
	case job.Held == nil && (s == nil || s.record == nil):
		return &lessor.Error{
			Code: lessor.CodeConflict, Detail: "the job is not running and has no sentinel; it is " + string(job.State),
		}
	case s == nil:
		s = &subject{folder: id.String(), job: id, stored: job}
	}
	if job.Held != nil {
		if err := m.sched.EndDead(ctx, c, job.Held.ID, rules.DeathMarked); err != nil {
			return err
		}
		m.noteEnd(s, lessor.Failed)
		m.giveUp(death{s, job.Held, rules.DeathMarked})
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.givenUp, s.reason = s.seen.pulse, rules.DeathMarked
	return nil
}

// Resume makes a new job from one that failed for good, or whose command was found dead.
func (m *Monitor) Resume(
	ctx context.Context, c scheduler.Caller, id lessor.JobID, fromCheckpoint bool,
) (lessor.Resumed, error) {
	next, err := m.sched.Resume(ctx, c, id, fromCheckpoint)
	if err != nil {
		return lessor.Resumed{}, err
	}
	return lessor.Resumed{JobID: id, NewJobID: next, Status: lessor.Queued, Node: m.cfg.Node}, nil
}

// mostFailed bounds the failed jobs that are shown; the newest are.
const mostFailed = 1000

// Failed lists the jobs of the store that failed for good because their command was found dead, and those that this
// node found dead since its start, newest first.
func (m *Monitor) Failed(ctx context.Context) (lessor.FailedJobs, error) {
	rows, dead, err := m.failedInStore(ctx)
	if err != nil {
		return lessor.FailedJobs{}, err
	}
	m.mu.Lock()
	for _, r := range m.results.all {
		if r.status == lessor.RecoveredDead {
			rows[r.job] = lessor.FailedJob{
				JobID: r.job, Reason: string(r.reason), FailedAt: r.at,
				LastHeartbeat: r.beat,
			}
		}
	}
	m.mu.Unlock()
	known := map[lessor.JobID]*storedJob{}
	if err := m.load(ctx, known, slices.Collect(maps.Keys(rows))); err != nil {
		return lessor.FailedJobs{}, err
	}
	list := lessor.FailedJobs{FailedJobs: make([]lessor.FailedJob, 0, len(rows)), Node: m.cfg.Node}
	for id, row := range rows {
		job := known[id]
		row.Resumable = dead[id] || job != nil && job.Final &&
			(job.State == lessor.Failed || job.State == lessor.Expired)
		list.FailedJobs = append(list.FailedJobs, row)
	}
	slices.SortFunc(list.FailedJobs, func(a, b lessor.FailedJob) int {
		return cmp.Or(cmp.Compare(b.FailedAt, a.FailedAt), cmp.Compare(a.JobID.String(), b.JobID.String()))
	})
	return list, nil
}

// failedInStore returns the failed jobs whose last attempt ended because its command was found dead.
func (m *Monitor) failedInStore(ctx context.Context) (map[lessor.JobID]lessor.FailedJob, map[lessor.JobID]bool, error) {
	jobs, _, err := m.sched.Jobs(ctx, monitor, lessor.JobFilter{State: lessor.Failed, Limit: mostFailed})
	if err != nil {
		return nil, nil, err
	}
	ids := make([]lessor.JobID, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	dead, err := m.sched.FoundDead(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	rows := make(map[lessor.JobID]lessor.FailedJob, len(dead))
	for _, j := range jobs {
		if dead[j.ID] && j.Error != nil {
			rows[j.ID] = lessor.FailedJob{JobID: j.ID, Reason: *j.Error, FailedAt: j.UpdatedAt}
		}
	}
	return rows, dead, nil
}
