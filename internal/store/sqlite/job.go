package sqlite

import (
	"context"
	"encoding/json"
	"errors"

	"lessor"
	"lessor/internal/rules"
)

const (
	jobColumns = "seq, id, lane, tags, idempotency_key, max_runtime_ms, max_attempts, backoff_first_ms, backoff_max_ms," +
		" run_at, tick_at, trace_id, actor, created_at, payload"

	readJob = "select seq, job.id, lane, tags, idempotency_key, max_runtime_ms, max_attempts, backoff_first_ms," +
		" backoff_max_ms, run_at, tick_at, trace_id, actor, created_at, payload, " + laneColumns +
		" from job join lane on lane.id = job.lane where job.id = ?"
	readJobAt = "select " + jobColumns + " from job where seq = ?"
)

// Insert implements scheduler.Tx. It keeps the specs, so they may not be changed any more. An id that is there already is
// scheduler.ErrBadCall.
func (t *tx) Insert(_ context.Context, specs []*rules.Spec) error {
	return t.do("insert jobs", func() error {
		if err := t.w.job.insert(len(specs), func(i int, a *args) { bindSpec(a, specs[i]) }); err != nil {
			return err
		}
		for _, s := range specs {
			t.store.specs.put(s)
		}
		return t.insertRuns(specs)
	})
}

func bindSpec(a *args, s *rules.Spec) {
	a.int(s.Seq)
	a.id(s.ID.UUID)
	a.int(int64(s.LaneID))
	a.text(writeTags(s.Tags))
	a.textOrNull(s.IdempotencyKey)
	a.millis(s.MaxRuntime)
	a.int(int64(s.MaxAttempts))
	a.millis(s.BackoffFirst)
	a.millis(s.BackoffMax)
	a.instant(s.RunAt)
	a.instant(s.TickAt)
	a.text(s.TraceID)
	a.text(s.Actor)
	a.instant(s.CreatedAt)
	a.blobOrNull(s.Payload)
}

// readSpec reads all of a spec but its Lane, and its BodyHash, which Claim returns.
func readSpec(r *row) (*rules.Spec, error) {
	s := &rules.Spec{
		Seq:    r.int(),
		ID:     lessor.JobID{UUID: r.id()},
		LaneID: rules.LaneID(r.int()),
	}
	var err error
	if s.Tags, err = readTags(r.text()); err != nil {
		return nil, err
	}
	s.IdempotencyKey = r.text()
	s.MaxRuntime = r.millis()
	s.MaxAttempts = int(r.int())
	s.BackoffFirst = r.millis()
	s.BackoffMax = r.millis()
	s.RunAt = r.instant()
	s.TickAt = r.instant()
	s.TraceID = r.text()
	s.Actor = r.text()
	s.CreatedAt = r.instant()
	s.Payload = r.blob()
	return s, nil
}

const noTags = "[]"

func writeTags(tags []string) string {
	if len(tags) == 0 {
		return noTags
	}
	b, err := json.Marshal(tags)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(b)
}

func readTags(s string) (tags []string, err error) {
	if s == noTags {
		return nil, nil
	}
	err = json.Unmarshal([]byte(s), &tags)
	return tags, err
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

func (v *view) spec(id lessor.JobID) (s *rules.Spec, err error) {
	err = query(v.conn, readJob,
		func(a *args) { a.id(id.UUID) },
		func(r *row) (err error) {
			if s, err = readSpec(r); err == nil {
				s.Lane = readLane(r)
			}
			return err
		})
	return s, err
}

// Specs implements scheduler.Tx: those of jobs that came lately are at hand. They are shared, and may not be changed.
func (t *tx) Specs(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Spec, error) {
	specs := make(map[lessor.JobID]*rules.Spec, len(ids))
	for _, id := range ids {
		s := t.store.specs.find(id)
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

// SpecsAt returns what jobs are, in the order of their turns; nil for a job that is not known. It is Specs for who
// knows the jobs' places in line: a job is found by its seq in half the time.
func (t *tx) SpecsAt(ctx context.Context, turns []rules.Turn) ([]*rules.Spec, error) {
	specs := make([]*rules.Spec, len(turns))
	for i := range turns {
		s := t.store.specs.findAt(&turns[i])
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

func (t *tx) specAt(seq int64) (s *rules.Spec, err error) {
	stmt := t.w.readJob
	stmt.BindInt64(1, seq)
	found, err := stmt.Step()
	if err != nil || !found {
		return nil, errors.Join(err, stmt.Reset())
	}
	s, err = readSpec(&row{stmt: stmt})
	if err = errors.Join(err, stmt.Reset()); err != nil {
		return nil, err
	}
	s.Lane, err = t.laneAt(s.LaneID)
	return s, err
}
