package memory

import (
	"context"
	"fmt"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// job is the row of a job, wherever it is: its standing. LastError is that of the last attempt after which it went on.
type job rules.Standing

func (j *job) lock() lock { return lock{"job", key{id: j.Spec.ID.UUID}} }

// show returns a copy for a reader.
func (j *job) show() *rules.Standing {
	s := rules.Standing(*j)
	if s.Held != nil {
		s.Held = new(*s.Held)
	}
	if s.Done != nil {
		s.Done = new(*s.Done)
		s.LastError = s.Done.Attempt.LastError()
	}
	if s.Report != nil {
		s.Report = new(*s.Report)
	}
	return &s
}

// Insert implements scheduler.Tx.
func (t *tx) Insert(_ context.Context, specs []*rules.Spec) error {
	return t.do("insert jobs", func() error {
		for _, spec := range specs {
			kept := *spec
			kept.BodyHash, kept.Delay, kept.ResumedFrom, kept.RowRef = [32]byte{}, 0, lessor.JobID{}, 0
			j := &job{Spec: &kept}
			if err := t.acquire(j.lock()); err != nil {
				return err
			}
			k := key{id: spec.ID.UUID}
			if t.state.jobs.has(k) {
				return fmt.Errorf("%w: there is a job %s", scheduler.ErrBadCall, spec.ID)
			}
			t.write(func(s *tables) { s.place(j) })
		}
		return nil
	})
}

// place puts the row of a job where it says that it is.
func (s *tables) place(j *job) {
	seq := j.Turn.Seq
	s.jobs.put(key{id: j.Spec.ID.UUID}, j)
	switch j.Place {
	case rules.InQueue:
		s.queue.put(key{n: seq}, j)
	case rules.Delayed:
		s.delayed.put(key{n: int64(j.Wait.Until), m: seq}, j)
	case rules.Leased:
		s.leases.put(key{n: seq}, j)
		eachLeaseKey(s, j.Held, func(index *table[int64], k key) { index.put(k, seq) })
	case rules.Ended:
		s.done.put(key{n: int64(j.Done.Attempt.EndedAt), m: seq}, j)
	case rules.Nowhere:
	}
	if d := j.Spec.Lane.Definition; d != "" && j.Place != rules.Ended {
		s.runs.put(key{text: d, id: j.Spec.ID.UUID}, j)
	}
}

// take removes the row of a job from its place.
func (s *tables) take(j *job) {
	seq := j.Turn.Seq
	switch j.Place {
	case rules.InQueue:
		s.queue.drop(key{n: seq})
	case rules.Delayed:
		s.delayed.drop(key{n: int64(j.Wait.Until), m: seq})
	case rules.Leased:
		s.leases.drop(key{n: seq})
		eachLeaseKey(s, j.Held, func(index *table[int64], k key) { index.drop(k) })
	case rules.Ended:
		s.done.drop(key{n: int64(j.Done.Attempt.EndedAt), m: seq})
	case rules.Nowhere:
	}
	s.runs.drop(key{text: j.Spec.Lane.Definition, id: j.Spec.ID.UUID})
}

// eachLeaseKey calls fn with the indexes that find a lease.
func eachLeaseKey(s *tables, h *rules.Held, fn func(*table[int64], key)) {
	if h.LockKey != "" {
		fn(&s.held, key{text: h.LockKey, id: h.Tenant.UUID})
	}
	if h.RequestID != "" {
		k := requestKey(scheduler.RequestRef{Holder: h.Holder(), RequestID: h.RequestID})
		k.n, k.m = int64(h.IssuedAt), h.Turn.Seq
		fn(&s.requested, k)
	}
	if h.WorkspaceID != "" {
		fn(&s.workspaces, key{text: h.WorkspaceID, n: h.Turn.Seq})
	}
}

func requestKey(r scheduler.RequestRef) key {
	return key{text: fmt.Sprintf("%d %s%s", len(r.Worker), r.Worker, r.RequestID), id: r.Space.UUID}
}

// Specs implements scheduler.View.
func (v *view) Specs(_ context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Spec, error) {
	specs := make(map[lessor.JobID]*rules.Spec, len(ids))
	s := v.read("read jobs")
	for _, id := range ids {
		if j, ok := s.jobs.get(key{id: id.UUID}); ok {
			specs[id] = j.Spec
		}
	}
	return specs, v.err
}

// SpecsAt implements scheduler.Tx.
func (t *tx) SpecsAt(_ context.Context, turns []rules.Turn) ([]*rules.Spec, error) {
	specs := make([]*rules.Spec, len(turns))
	s := t.read("read jobs")
	for i := range turns {
		if j, ok := s.jobs.get(key{id: turns[i].Job.UUID}); ok {
			specs[i] = j.Spec
		}
	}
	return specs, t.err
}

// SaveReports implements scheduler.Tx.
func (t *tx) SaveReports(_ context.Context, reports []rules.Report) error {
	return t.do("save reports", func() error {
		for _, r := range reports {
			k := key{id: r.Job.UUID}
			if err := t.acquire(lock{"job", k}); err != nil {
				return err
			}
			j, ok := t.state.jobs.get(k)
			if !ok {
				continue
			}
			if j.Report != nil {
				r = j.Report.Merge(r)
			}
			t.change(j, func(j *job) { j.Report = &r })
		}
		return nil
	})
}

// change writes a job that stays in its place.
func (t *tx) change(j *job, fn func(*job)) {
	changed := new(*j)
	fn(changed)
	t.write(func(s *tables) { s.place(changed) })
}

// Reports implements scheduler.View.
func (v *view) Reports(_ context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Report, error) {
	reports := make(map[lessor.JobID]*rules.Report)
	s := v.read("read reports")
	for _, id := range ids {
		if j, ok := s.jobs.get(key{id: id.UUID}); ok && j.Report != nil {
			reports[id] = new(*j.Report)
		}
	}
	return reports, v.err
}
