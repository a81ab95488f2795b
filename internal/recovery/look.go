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
	files        []*sentinel.Found[sentinel.Sentinel]
	facts        map[lessor.JobID]*facts
}

// scan looks at the whole workspace.
func (m *Monitor) scan(ctx context.Context) error {
	if !m.results.begun() {
		// The first call to be answered by the scheduler: from here on it serves, and leases have their floor.
		if _, err := m.sched.Status(ctx, monitor); err != nil {
			return err
		}
		if err := m.openAlerts(ctx, m.adopt); err != nil {
			return err
		}
	}
	began := m.now()
	f, err := m.lookAround(ctx)
	if err != nil {
		return err
	}
	if err := m.settle(ctx, m.take(f, nil)); err != nil {
		return err
	}
	if err := m.openAlerts(ctx, m.clearHeld); err != nil {
		return err
	}
	m.scanAt = began.Add(m.cfg.Scan)
	m.planLeases(began)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = lessor.LastScan{At: began.wall, DurationMS: time.Since(began.Time).Milliseconds(), Sentinels: len(f.files)}
	m.lastAt = began.Time
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
	f.facts = make(map[lessor.JobID]*facts, len(leases))
	all := make([]facts, len(leases))
	for i := range leases {
		all[i] = facts{Watched: leases[i], known: true, at: f.began}
		f.facts[leases[i].Job] = &all[i]
	}
	var rest []lessor.JobID
	for _, one := range f.files {
		if f.facts[one.JobID] == nil && !one.JobID.IsZero() {
			rest = append(rest, one.JobID)
		}
	}
	return f, m.learn(ctx, f.facts, rest)
}

// leaseLooks is how many times a ttl the leases are looked at. A live command beats every third of its ttl; so one whose lease is found
// to be half used up has missed a beat, and only then its folder is looked at. A new lease is heard of long before it can end.
const leaseLooks = 8

// leastPause is the least time between two looks at the leases, for a ttl of milliseconds.
const leastPause = 10 * time.Millisecond

// planLeases plans the next look at the leases.
func (m *Monitor) planLeases(now moment) {
	if m.cfg.TTL > 0 {
		m.leasesAt = now.Add(max(m.cfg.TTL/leaseLooks, leastPause))
	}
}

// lookAtLeases learns which leases there are from here and when they end, without a look at the files. New ones are due to be looked at.
func (m *Monitor) lookAtLeases(ctx context.Context) error {
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
		before := s.facts
		s.facts = &facts{Watched: w, known: true, at: now.Time}
		switch {
		case !before.known:
			s.next = now.Time
		case s.watch == nil && w.EndsAt != before.EndsAt: // else what was planned stands
			s.next = m.nextLook(s, now)
		}
	}
	return nil
}

// lookAt looks at some folders again.
func (m *Monitor) lookAt(ctx context.Context, some []*subject) error {
	f := found{began: time.Now(), facts: make(map[lessor.JobID]*facts, len(some))}
	ids := make([]lessor.JobID, 0, len(some))
	for _, s := range some {
		ids = append(ids, s.job)
		record, err := m.read(s.job)
		if !errors.Is(err, fs.ErrNotExist) {
			f.files = append(f.files, &sentinel.Found[sentinel.Sentinel]{Folder: s.folder, JobID: s.job, Record: record, Err: err})
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
func (m *Monitor) learn(ctx context.Context, all map[lessor.JobID]*facts, ids []lessor.JobID) error {
	for page := range slices.Chunk(ids, factPage) {
		known, err := m.sched.Watched(ctx, page)
		if err != nil {
			return err
		}
		for id, w := range known {
			all[id] = &facts{Watched: w, known: true, at: time.Now()}
		}
	}
	return nil
}

// take notes what was seen of some subjects, nil meaning all there are, and returns whom it concerns. A look at all also finds who
// has a lease from here and no sentinel.
func (m *Monitor) take(f found, some []*subject) []*subject {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looks++
	touched := make([]*subject, 0, max(len(f.files), len(some)))
	for _, one := range f.files {
		s := m.subjectOf(one.Folder, one.JobID)
		s.record, s.err = nil, one.Err
		if one.Err == nil {
			s.record = &one.Record
			s.sight.see(contentOf(s.record), f.began, f.ended)
		}
		touched = append(touched, m.learned(s, f))
	}
	if some == nil {
		for id, w := range f.facts {
			if w.look != m.looks {
				m.subjectOf(id.String(), id)
			}
		}
		some = slices.Collect(maps.Values(m.subjects))
	}
	for _, s := range some {
		if s.look != m.looks {
			s.record, s.err = nil, nil
			touched = append(touched, m.learned(s, f))
		}
	}
	return touched
}

// learned notes what the store said about a subject in this look.
func (m *Monitor) learned(s *subject, f found) *subject {
	if s.facts = f.facts[s.job]; s.facts == nil {
		s.facts = new(facts)
	}
	s.look, s.facts.look = m.looks, m.looks
	return s
}

func (m *Monitor) subjectOf(folder string, id lessor.JobID) *subject {
	s := m.subjects[folder]
	if s == nil {
		s = &subject{folder: folder, job: id, facts: new(facts)}
		m.subjects[folder] = s
	}
	return s
}
