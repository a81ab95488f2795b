package recovery

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"lessor"
	"lessor/internal/fault"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
)

// pageSize is how many jobs are loaded at once.
const pageSize = 1000

// found is the result of one round.
type found struct {
	began, ended time.Time // each file was read between these two
	files        []*sentinel.Found
	jobs         map[lessor.JobID]*storedJob
}

// scan checks the whole workspace.
func (m *Monitor) scan(ctx context.Context) error {
	if !m.results.begun() {
		// Once the scheduler has answered a call it serves, and leases have their floor.
		if _, err := m.sched.Status(ctx, monitor); err != nil {
			return err
		}
		if err := m.openAlerts(ctx, m.adoptAlerts); err != nil {
			return err
		}
	}
	began := m.now()
	f, err := m.readAll(ctx)
	if err != nil {
		return err
	}
	if err := m.settle(ctx, m.take(f, nil)); err != nil {
		return err
	}
	if err := m.openAlerts(ctx, m.clearFolderAlerts); err != nil {
		return err
	}
	m.scanAt = began.Add(m.cfg.Scan)
	m.planLeases(began)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = lessor.LastScan{
		At: began.wall, DurationMS: time.Since(began.Time).Milliseconds(), Sentinels: len(f.files),
	}
	m.lastAt = began.Time
	return nil
}

// readAll reads all sentinels and, at the same time, the leases of the workspace. It loads the jobs of other sentinels
// afterwards, so that no sentinel seems to belong to a lease that was not granted yet.
func (m *Monitor) readAll(ctx context.Context) (f found, err error) {
	var leases []scheduler.Watched
	var loaded fault.Group
	var loadErr error
	f.began = time.Now()
	loaded.Go(func() { leases, loadErr = m.sched.WorkspaceLeases(ctx, m.workspace.ID()) })
	f.files, err = m.sentinels.Scan(ctx)
	f.ended = time.Now()
	loaded.Wait()
	if err = errors.Join(err, loadErr); err != nil {
		return f, err
	}
	f.jobs = make(map[lessor.JobID]*storedJob, len(leases))
	all := make([]storedJob, len(leases))
	for i := range leases {
		all[i] = storedJob{Watched: leases[i], known: true, at: f.began}
		f.jobs[leases[i].Job] = &all[i]
	}
	var rest []lessor.JobID
	for _, one := range f.files {
		if f.jobs[one.JobID] == nil && !one.JobID.IsZero() {
			rest = append(rest, one.JobID)
		}
	}
	return f, m.load(ctx, f.jobs, rest)
}

// leaseChecks is how often per ttl the leases are checked. A live command sends a heartbeat every third of its ttl. The
// folder of a lease is checked only when half of the ttl has passed without one. A new lease is found long before its
// end.
const leaseChecks = 8

// minLeaseInterval bounds the checks of leases whose ttl is milliseconds.
const minLeaseInterval = 10 * time.Millisecond

// planLeases plans the next check of the leases.
func (m *Monitor) planLeases(now moment) {
	if m.cfg.TTL > 0 {
		m.leasesAt = now.Add(max(m.cfg.TTL/leaseChecks, minLeaseInterval))
	}
}

// checkLeases loads the leases of the workspace and when they end, without reading files. New ones are due to be
// checked.
func (m *Monitor) checkLeases(ctx context.Context) error {
	now := m.now()
	leases, err := m.sched.WorkspaceLeases(ctx, m.workspace.ID())
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.planLeases(now)
	for _, w := range leases {
		s := m.subjectOf(w.Job.String(), w.Job)
		before := s.stored
		s.stored = &storedJob{Watched: w, known: true, at: now.Time}
		switch {
		case !before.known:
			s.next = now.Time
		case s.watch == nil && w.EndsAt != before.EndsAt: // otherwise the plan stands
			s.next = m.nextCheck(s, now)
		}
	}
	return nil
}

// checkFolders checks some folders again.
func (m *Monitor) checkFolders(ctx context.Context, some []*subject) error {
	f := found{began: time.Now(), jobs: make(map[lessor.JobID]*storedJob, len(some))}
	ids := make([]lessor.JobID, 0, len(some))
	for _, s := range some {
		ids = append(ids, s.job)
		record, err := m.read(s.job)
		if !errors.Is(err, fs.ErrNotExist) {
			f.files = append(f.files, &sentinel.Found{Folder: s.folder, JobID: s.job, Record: record, Err: err})
		}
	}
	f.ended = time.Now()
	if err := m.load(ctx, f.jobs, ids); err != nil {
		return err
	}
	return m.settle(ctx, m.take(f, some))
}

// read reads the sentinel of one job.
func (m *Monitor) read(id lessor.JobID) (sentinel.Sentinel, error) {
	f, err := m.workspace.Folder(id)
	if err != nil {
		return sentinel.Sentinel{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return f.Sentinel()
}

// load adds what the store knows about jobs to all.
func (m *Monitor) load(ctx context.Context, all map[lessor.JobID]*storedJob, ids []lessor.JobID) error {
	for page := range slices.Chunk(ids, pageSize) {
		known, err := m.sched.Watched(ctx, page)
		if err != nil {
			return err
		}
		for id, w := range known {
			all[id] = &storedJob{Watched: w, known: true, at: time.Now()}
		}
	}
	return nil
}

// take records what was found about some subjects and returns them. A nil some means all: the known ones, and those
// that have a lease from this workspace and no sentinel.
func (m *Monitor) take(f found, some []*subject) []*subject {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rounds++
	checked := make([]*subject, 0, max(len(f.files), len(some)))
	for _, one := range f.files {
		s := m.subjectOf(one.Folder, one.JobID)
		s.record, s.err = nil, one.Err
		if one.Err == nil {
			s.record = &one.Record
			s.seen.note(pulseOf(s.record), f.began, f.ended)
		}
		checked = append(checked, m.noteStored(s, f))
	}
	if some == nil {
		for id, w := range f.jobs {
			if w.round != m.rounds {
				m.subjectOf(id.String(), id)
			}
		}
		some = slices.Collect(maps.Values(m.subjects))
	}
	for _, s := range some {
		if s.round != m.rounds {
			s.record, s.err = nil, nil
			checked = append(checked, m.noteStored(s, f))
		}
	}
	return checked
}

// noteStored records what the store knows about a subject in this round.
func (m *Monitor) noteStored(s *subject, f found) *subject {
	if s.stored = f.jobs[s.job]; s.stored == nil {
		s.stored = new(storedJob)
	}
	s.round, s.stored.round = m.rounds, m.rounds
	return s
}

func (m *Monitor) subjectOf(folder string, id lessor.JobID) *subject {
	s := m.subjects[folder]
	if s == nil {
		s = &subject{folder: folder, job: id, stored: new(storedJob)}
		m.subjects[folder] = s
	}
	return s
}
