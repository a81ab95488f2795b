package recovery

import (
	"cmp"
	"context"
	"slices"

	"lessor"
	"lessor/internal/scheduler"
)

// whyMarked is how a job is told about that an operator gave up.
const whyMarked = "Marked dead by an operator"

// lookAtJob looks at one job, whether it was known before or not.
func (m *Monitor) lookAtJob(ctx context.Context, id lessor.JobID) error {
	m.mu.Lock()
	s := m.subjectOf(id.String(), id)
	m.mu.Unlock()
	return m.lookAt(ctx, []*subject{s})
}

// Health looks at one job and shows what the workspace says about it.
func (m *Monitor) Health(ctx context.Context, id lessor.JobID) (lessor.JobHealth, error) {
	if err := m.inRun(ctx, func(ctx context.Context) error { return m.lookAtJob(ctx, id) }); err != nil {
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
		return h, nil // no folder, or none of ours: there is no workspace
	}
	defer func() { _ = f.Close() }() // it was only read
	h.WorkspaceExists = true
	h.SessionDataExists, err = f.HasSessionData(session)
	return h, err
}

// MarkDead gives up a job on an operator's word: its attempt fails, the command is told to stop, and its folder is cleaned away.
func (m *Monitor) MarkDead(ctx context.Context, c scheduler.Caller, id lessor.JobID) (lessor.JobHealth, error) {
	err := m.inRun(ctx, func(ctx context.Context) error {
		if err := m.lookAtJob(ctx, id); err != nil {
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
	known := map[lessor.JobID]*facts{}
	if err := m.learn(ctx, known, []lessor.JobID{id}); err != nil {
		return err
	}
	s, job := m.subjects[id.String()], known[id]
	if job == nil {
		job = new(facts)
	}
	switch {
	case s == nil && !job.known:
		return lessor.ErrJobNotFound
	case job.Held == nil && (s == nil || s.record == nil):
		return &lessor.Error{Code: lessor.CodeConflict, Detail: "the job does not run, and there is no sentinel of it; it is " + string(job.State)}
	case s == nil:
		s = &subject{folder: id.String(), job: id, facts: job}
	}
	if job.Held != nil {
		if err := m.sched.Bury(ctx, c, job.Held.ID, whyMarked); err != nil {
			return err
		}
		m.over(s, lessor.Failed)
		m.giveUp(burial{s, job.Held, whyMarked})
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.buried, s.why = s.sight.content, whyMarked
	return nil
}

// Resume makes a new job from one that failed for good, or whose command was found dead.
func (m *Monitor) Resume(ctx context.Context, c scheduler.Caller, id lessor.JobID, fromCheckpoint bool) (lessor.Resumed, error) {
	next, err := m.sched.Resume(ctx, c, id, fromCheckpoint)
	if err != nil {
		return lessor.Resumed{}, err
	}
	return lessor.Resumed{JobID: id, NewJobID: next, Status: lessor.Queued, Node: m.cfg.Node}, nil
}

// mostFailed is how many failed jobs are shown, the newest.
const mostFailed = 1000

// Failed lists the jobs of the store that failed for good because their command was found dead, and those that this node found dead
// since its start, newest first.
func (m *Monitor) Failed(ctx context.Context) (lessor.FailedJobs, error) {
	jobs, _, err := m.sched.Jobs(ctx, monitor, lessor.JobFilter{State: lessor.Failed, Limit: mostFailed})
	if err != nil {
		return lessor.FailedJobs{}, err
	}
	rows := map[lessor.JobID]lessor.FailedJob{}
	dead := map[lessor.JobID]bool{} // its last attempt is, for good or until the retry
	for _, j := range jobs {
		if j.Error != nil && slices.Contains([]string{whyStopped, whyNotResumed, whyTooOld, whyMarked}, *j.Error) {
			rows[j.ID] = lessor.FailedJob{JobID: j.ID, Reason: *j.Error, FailedAt: j.UpdatedAt}
			dead[j.ID] = true
		}
	}
	m.mu.Lock()
	for _, r := range m.results.all {
		if r.status == lessor.RecoveredDead {
			rows[r.job] = lessor.FailedJob{JobID: r.job, Reason: r.why, FailedAt: r.at, LastHeartbeat: r.beat}
		}
	}
	m.mu.Unlock()
	known := map[lessor.JobID]*facts{}
	list := lessor.FailedJobs{FailedJobs: make([]lessor.FailedJob, 0, len(rows)), Node: m.cfg.Node}
	ids := make([]lessor.JobID, 0, len(rows))
	for id := range rows {
		ids = append(ids, id)
	}
	if err := m.learn(ctx, known, ids); err != nil {
		return lessor.FailedJobs{}, err
	}
	for id, row := range rows {
		job := known[id]
		row.Resumable = dead[id] || job != nil && job.Final && (job.State == lessor.Failed || job.State == lessor.Expired)
		list.FailedJobs = append(list.FailedJobs, row)
	}
	slices.SortFunc(list.FailedJobs, func(a, b lessor.FailedJob) int {
		return cmp.Or(cmp.Compare(b.FailedAt, a.FailedAt), cmp.Compare(a.JobID.String(), b.JobID.String()))
	})
	return list, nil
}
