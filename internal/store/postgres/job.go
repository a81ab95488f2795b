package postgres

import (
	"context"
	"encoding/hex"
	"encoding/json"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/postgres/wire"
)

const (
	jobColumns = "id, lane, seq, tags, idempotency_key, max_runtime_ms, max_attempts, backoff_first_ms, backoff_max_ms, run_at, tick_at, trace_id, actor, created_at, payload"
	jobTypes   = "uiittiiiiiittiy"
)

var (
	insertJobs = wire.InsertAll("job", jobColumns, jobTypes)
	readJobs   = wire.SQL("select " + wire.Of("j", jobColumns) + ", " + wire.Of("n", laneColumns) + " from job j join lane n on n.id = j.lane" +
		" where j.id = any($1::uuid[])")
)

// Insert implements scheduler.JobTx.
func (t *tx) Insert(_ context.Context, specs []*rules.Spec) error {
	if len(specs) == 0 {
		return t.err
	}
	formCohorts(specs)
	r := t.scratch.Reset()
	for _, s := range specs {
		r.Next()
		bindSpec(r, s)
	}
	t.inserted = append(t.inserted, specs...)
	_ = t.write("insert jobs", wire.Step{Stmt: insertJobs, Rows: r}) // kept in t.err
	t.insertRuns(specs)
	return t.err
}

func bindSpec(r *wire.Rows, s *rules.Spec) {
	r.ID(s.ID.UUID)
	r.Int(int64(s.LaneID))
	r.Int(s.Seq)
	r.Text(writeTags(s.Tags))
	r.TextOrNull(s.IdempotencyKey)
	r.Millis(s.MaxRuntime)
	r.Int(int64(s.MaxAttempts))
	r.Millis(s.BackoffFirst)
	r.Millis(s.BackoffMax)
	r.Instant(s.RunAt)
	r.Instant(s.TickAt)
	r.Text(storedTrace(s))
	r.Text(s.Actor)
	r.Instant(s.CreatedAt)
	r.BytesOrNull(s.Payload)
}

// readSpec reads all of a spec but its BodyHash, which Claim returns.
func readSpec(r *wire.Row) (*rules.Spec, error) {
	s := &rules.Spec{
		ID:     lessor.JobID{UUID: r.ID()},
		LaneID: rules.LaneID(r.Int()),
		Seq:    r.Int(),
	}
	var err error
	if s.Tags, err = readTags(r.Text()); err != nil {
		return nil, err
	}
	s.IdempotencyKey = r.Text()
	s.MaxRuntime = r.Millis()
	s.MaxAttempts = int(r.Int())
	s.BackoffFirst = r.Millis()
	s.BackoffMax = r.Millis()
	s.RunAt = r.Instant()
	s.TickAt = r.Instant()
	if s.TraceID = r.Text(); s.TraceID == "" {
		s.TraceID = madeUpTrace(s.ID)
	}
	s.Actor = r.Text()
	s.CreatedAt = r.Instant()
	s.Payload = r.Bytes()
	s.Lane = readLane(r)
	return s, nil
}

// madeUpTrace is the trace id of a job that was submitted without one.
func madeUpTrace(id lessor.JobID) string { return hex.EncodeToString(id.UUID[:]) }

// storedTrace is "" for a trace id that was made up: it need not be kept, nor found.
func storedTrace(s *rules.Spec) string {
	var made [2 * len(lessor.UUID{})]byte
	hex.Encode(made[:], s.ID.UUID[:])
	if s.TraceID == string(made[:]) {
		return ""
	}
	return s.TraceID
}

const noTags = "[]"

// writeTags makes one text of tags. JSON, so that it holds characters that a text of PostgreSQL cannot.
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
func (v *view) Specs(_ context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Spec, error) {
	specs := make(map[lessor.JobID]*rules.Spec, len(ids))
	return specs, v.specs(ids, specs)
}

func (v *view) specs(ids []lessor.JobID, into map[lessor.JobID]*rules.Spec) error {
	if len(ids) == 0 {
		return v.err
	}
	return v.query("read jobs", readJobs, func(r *wire.Row) error {
		s, err := readSpec(r)
		if err == nil {
			into[s.ID] = s
		}
		return err
	}, wire.IDs(ids))
}

// Specs implements scheduler.Tx: those of jobs that came to this node lately are at hand. They are shared, and may not be
// changed.
func (t *tx) Specs(_ context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Spec, error) {
	specs := make(map[lessor.JobID]*rules.Spec, len(ids))
	var unknown []lessor.JobID
	for _, id := range ids {
		if s := t.store.specs.find(id); s != nil {
			specs[id] = s
		} else {
			unknown = append(unknown, id)
		}
	}
	for _, s := range t.inserted { // in this very transaction
		if len(unknown) == 0 {
			break
		}
		unknown = deleteID(unknown, s, specs)
	}
	return specs, t.specs(unknown, specs)
}

// deleteID takes a spec's id out of those not known.
func deleteID(unknown []lessor.JobID, s *rules.Spec, specs map[lessor.JobID]*rules.Spec) []lessor.JobID {
	for i, id := range unknown {
		if id == s.ID {
			specs[id] = s
			return append(unknown[:i], unknown[i+1:]...)
		}
	}
	return unknown
}
