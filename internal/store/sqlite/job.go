package sqlite

import (
	"context"
	"errors"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/row"
)

var (
	jobColumns = row.Columns(row.Job)
	readJob    = "select " + row.Of("job", jobColumns) + ", " + row.Of("lane", laneColumns) +
		" from job join lane on lane.id = job.lane where job.id = ?"
	readJobAt = "select " + jobColumns + " from job where seq = ?"
)

// Insert implements scheduler.Tx. It keeps the specs: the caller may no longer change them. An id that is already there
// is scheduler.ErrBadCall.
func (t *tx) Insert(_ context.Context, specs []*rules.Spec) error {
	return t.do("insert jobs", func() error {
		err := t.w.job.insert(len(specs), func(i int, c *row.Codec) { row.Job(c, specs[i]) })
		if err != nil {
			return err
		}
		for _, s := range specs {
			t.store.specs.Put(s)
		}
		return t.insertRuns(specs)
	})
}

// Specs implements scheduler.View.
func (v *view) Specs(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Spec, error) {
	specs := make(map[lessor.JobID]*rules.Spec, len(ids))
	for _, id := range ids {
		s, err := v.spec(id)
		if err != nil {
			return nil, readFault(ctx, "read jobs", err)
		}
		if s != nil {
			specs[id] = s
		}
	}
	return specs, nil
}

func (v *view) spec(id lessor.JobID) (*rules.Spec, error) {
	return find(v.conn, readJob, func(a *args) { a.ID(id.UUID) }, func(c *row.Codec, s *rules.Spec) {
		row.Job(c, s)
		row.Lane(c, &s.Lane)
	})
}

// Specs implements scheduler.Tx. Those of recent jobs are in memory. They are shared and must not be changed.
func (t *tx) Specs(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Spec, error) {
	specs := make(map[lessor.JobID]*rules.Spec, len(ids))
	for _, id := range ids {
		s := t.store.specs.Find(id)
		if s == nil {
			var err error
			if s, err = t.spec(id); err != nil {
				return nil, readFault(ctx, "read jobs", err)
			}
		}
		if s != nil {
			specs[id] = s
		}
	}
	return specs, nil
}

// SpecsAt returns the specs of jobs, in the order of their turns; nil for a job that is not there. It is Specs for a
// caller that knows the jobs' places in line: by its seq a job is found in half the time.
func (t *tx) SpecsAt(ctx context.Context, turns []rules.Turn) ([]*rules.Spec, error) {
	specs := make([]*rules.Spec, len(turns))
	for i := range turns {
		s := t.store.specs.FindAt(&turns[i])
		if s == nil {
			var err error
			if s, err = t.specAt(turns[i].Seq); err != nil {
				return nil, readFault(ctx, "read jobs", err)
			}
		}
		if s != nil && s.ID == turns[i].Job {
			specs[i] = s
		}
	}
	t.read = specs
	return specs, nil
}

func (t *tx) specAt(seq int64) (*rules.Spec, error) {
	stmt := t.w.readJob
	stmt.BindInt64(1, seq)
	found, err := stmt.Step()
	if err != nil || !found {
		return nil, errors.Join(err, stmt.Reset())
	}
	s, c := &rules.Spec{}, row.Read(&result{stmt: stmt})
	row.Job(c, s)
	if err = errors.Join(c.Err, stmt.Reset()); err != nil {
		return nil, err
	}
	s.Lane, err = t.laneAt(s.LaneID)
	return s, err
}
