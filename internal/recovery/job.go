package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
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
	h := lessor.JobHealth{JobID: id, HeartbeatStatus: lessor.HeartbeatUnknown, Node: m.cfg.Node}
	job, err := m.sched.Job(ctx, monitor, id)
	if err != nil && !errors.Is(err, lessor.ErrJobNotFound) {
		return h, err
	}
	session, unknown := sentinel.SessionOf(id, job.Payload), err
	m.mu.Lock()
	if s := m.subjects[id.String()]; s != nil {
		e := m.entry(s, m.now())
		h.SentinelFileExists, h.LastHeartbeat = e.file, e.LastHeartbeat
		if e.verdict != "" {
			h.HeartbeatStatus, h.AgeSeconds = lessor.HeartbeatStatus(e.verdict), new(seconds(e.age))
		}
		if e.SessionID != nil {
			session = *e.SessionID
		}
	}
	m.mu.Unlock()
	if unknown != nil && !h.SentinelFileExists {
		return lessor.JobHealth{}, unknown
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

// Resume makes a new job from one that failed for good, or whose command was found dead. The new job starts with a copy
// of the old one's session files, if its folder is here.
func (m *Monitor) Resume(
	ctx context.Context, c scheduler.Caller, id lessor.JobID, fromCheckpoint bool,
) (lessor.Resumed, error) {
	next, err := m.sched.Resumable(ctx, c, id)
	if err != nil {
		return lessor.Resumed{}, err
	}
	files, err := m.copySession(id, next)
	if err != nil {
		return lessor.Resumed{}, err
	}
	err = m.sched.Resume(ctx, c, id, next.ID, fromCheckpoint)
	if e, _ := errors.AsType[*lessor.Error](err); err != nil && (e == nil || !e.OutcomeUnknown) {
		return lessor.Resumed{}, errors.Join(err, m.workspace.Remove(next.ID))
	}
	return lessor.Resumed{
		JobID: id, NewJobID: next.ID, Status: lessor.Queued, SessionFiles: files, Node: m.cfg.Node,
	}, err
}

// copySession copies the session files of a job into the folder of the job that continues it, and counts them. The
// default session of a job is called like the job. A copy is made before the new job can be granted, and leaves the old
// folder as it is: the resume may still be refused.
func (m *Monitor) copySession(id lessor.JobID, next *rules.Spec) (int, error) {
	f, err := m.workspace.Folder(id)
	if err != nil {
		return 0, nil // there is no folder of ours
	}
	defer func() { _ = f.Close() }() // it was only read
	if lock, err := f.Lock(); err != nil {
		return 0, err
	} else if lock != nil { // otherwise a command hangs in it, and no cleanup removes it either
		defer func() { _ = lock.Close() }() // closing it releases the lock
	}
	sessions := map[string]string{sentinel.SessionOf(id, next.Payload): sentinel.SessionOf(next.ID, next.Payload)}
	if record, err := f.Sentinel(); err == nil && record.SessionID != "" && sessions[record.SessionID] == "" {
		sessions[record.SessionID] = record.SessionID
	}
	n, err := m.workspace.CopySession(f, next.ID, sessions)
	if bad, ok := errors.AsType[*sentinel.InvalidError](err); ok {
		return 0, &lessor.Error{Code: lessor.CodeConflict, Detail: fmt.Sprintf(
			"the session files in %s cannot be copied: %v; remove or shorten them, and resume the job again",
			f.Path(), bad)}
	}
	return n, err
}

// maxFailed bounds the failed jobs that are shown; the newest are.
const maxFailed = 1000

// Failed lists the jobs of the store that failed for good because their command was found dead, and those that this
// node found dead since its start, newest first.
func (m *Monitor) Failed(ctx context.Context) (lessor.FailedJobs, error) {
	rows := map[lessor.JobID]lessor.FailedJob{}
	jobs, _, err := m.sched.Jobs(ctx, monitor, lessor.JobFilter{State: lessor.Failed, Limit: maxFailed})
	if err != nil {
		return lessor.FailedJobs{}, err
	}
	for _, j := range jobs {
		if j.Error != nil {
			rows[j.ID] = lessor.FailedJob{JobID: j.ID, Reason: *j.Error, FailedAt: j.UpdatedAt}
		}
	}
	found := map[lessor.JobID]bool{}
	m.mu.Lock()
	for _, r := range m.results.all {
		if r.status == lessor.RecoveredDead {
			found[r.job] = true
			rows[r.job] = lessor.FailedJob{
				JobID: r.job, Reason: string(r.reason), FailedAt: r.at, LastHeartbeat: r.beat,
			}
		}
	}
	m.mu.Unlock()
	newest := slices.SortedFunc(maps.Values(rows), func(a, b lessor.FailedJob) int {
		return cmp.Or(cmp.Compare(b.FailedAt, a.FailedAt), cmp.Compare(a.JobID.String(), b.JobID.String()))
	})
	list := lessor.FailedJobs{FailedJobs: []lessor.FailedJob{}, Node: m.cfg.Node}
	for page := range slices.Chunk(newest, pageSize) {
		ids := make([]lessor.JobID, len(page))
		for i, row := range page {
			ids[i] = row.JobID
		}
		histories, err := m.sched.Histories(ctx, ids)
		if err != nil {
			return lessor.FailedJobs{}, err
		}
		for _, row := range page {
			h := histories[row.JobID]
			if len(list.FailedJobs) < maxFailed && (found[row.JobID] || h != nil && h.FoundDead()) {
				row.Resumable = h != nil && rules.CheckResume(h) == nil
				list.FailedJobs = append(list.FailedJobs, row)
			}
		}
	}
	return list, nil
}
