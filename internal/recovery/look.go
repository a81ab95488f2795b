package recovery

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
)

// factPage is how many jobs are looked up at once.
const factPage = 1000

// found is what one look saw.
type found struct {
	began, ended time.Time // between these two each file was looked at
	files        []sentinel.Found[sentinel.Sentinel]
	facts        map[lessor.JobID]facts
}

// scan looks at the whole workspace.
func (m *Monitor) scan(ctx context.Context) error {
	if !m.results.begun() {
		// The first call to be answered by the scheduler: from here on it serves, and leases have their floor.
		if _, err := m.sched.Status(ctx, monitor); err != nil {
			return err
		}
		if err := m.adoptAlerts(ctx); err != nil {
			return err
		}
	}
	began := time.Now()
	f, err := m.lookAround(ctx)
	if err != nil {
		return err
	}
	if err := m.settle(ctx, m.take(f, nil)); err != nil {
		return err
	}
	m.scanAt = began.Add(m.cfg.Scan)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = lessor.LastScan{At: lessor.At(began), DurationMS: time.Since(began).Milliseconds(), Sentinels: len(f.files)}
	m.lastAt = began
	return nil
}

// lookAround reads all sentinels and, beside it, the leases from here. A sentinel of another lease is looked up afterwards, so that it
// never seems to be of one that was not granted yet.
func (m *Monitor) lookAround(ctx context.Context) (f found, err error) {
	var leases []scheduler.Watched
	var loaded sync.WaitGroup
	var loadErr error
	f.began = time.Now()
	loaded.Go(func() { leases, loadErr = m.sched.WorkspaceLeases(ctx, m.workspace.ID()) })
	f.files, err = m.sentinels.Scan(ctx)
	f.ended = time.Now()
	loaded.Wait()
	if err = errors.Join(err, loadErr); err != nil {
		return f, err
	}
	f.facts = make(map[lessor.JobID]facts, len(leases))
	for _, w := range leases {
		f.facts[w.Job] = facts{w, true, f.began}
	}
	var rest []lessor.JobID
	for i := range f.files {
		if _, ok := f.facts[f.files[i].JobID]; !ok && !f.files[i].JobID.IsZero() {
			rest = append(rest, f.files[i].JobID)
		}
	}
	return f, m.learn(ctx, f.facts, rest)
}

// lookAt looks at some folders again.
func (m *Monitor) lookAt(ctx context.Context, some []*subject) error {
	f := found{began: time.Now(), facts: make(map[lessor.JobID]facts, len(some))}
	ids := make([]lessor.JobID, 0, len(some))
	for _, s := range some {
		ids = append(ids, s.job)
		record, err := m.read(s.job)
		if !errors.Is(err, fs.ErrNotExist) {
			f.files = append(f.files, sentinel.Found[sentinel.Sentinel]{Folder: s.folder, JobID: s.job, Record: record, Err: err})
		}
	}
	f.ended = time.Now()
	if err := m.learn(ctx, f.facts, ids); err != nil {
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

// learn adds what the store knows about jobs.
func (m *Monitor) learn(ctx context.Context, all map[lessor.JobID]facts, ids []lessor.JobID) error {
	for page := range slices.Chunk(ids, factPage) {
		known, err := m.sched.Watched(ctx, page)
		if err != nil {
			return err
		}
		for id, w := range known {
			all[id] = facts{w, true, time.Now()}
		}
	}
	return nil
}

// take notes what was seen of some subjects, nil meaning all there are, and returns whom it concerns. A look at all also finds who
// has a lease from here and no sentinel.
func (m *Monitor) take(f found, some []*subject) []*subject {
	m.mu.Lock()
	defer m.mu.Unlock()
	touched := make([]*subject, 0, len(f.files))
	for i := range f.files {
		one := &f.files[i]
		s := m.subjectOf(one.Folder, one.JobID)
		s.record, s.err = nil, one.Err
		if one.Err == nil {
			s.record = &one.Record
			s.sight.see(contentOf(s.record), f.began, f.ended)
		}
		s.facts = f.facts[s.job]
		touched = append(touched, s)
	}
	if some == nil {
		for id := range f.facts {
			m.subjectOf(id.String(), id)
		}
		some = slices.Collect(maps.Values(m.subjects))
	}
	seen := make(map[*subject]bool, len(touched))
	for _, s := range touched {
		seen[s] = true
	}
	for _, s := range some {
		if !seen[s] {
			s.record, s.err, s.facts = nil, nil, f.facts[s.job]
			touched = append(touched, s)
		}
	}
	return touched
}

func (m *Monitor) subjectOf(folder string, id lessor.JobID) *subject {
	s := m.subjects[folder]
	if s == nil {
		s = &subject{folder: folder, job: id}
		m.subjects[folder] = s
	}
	return s
}
