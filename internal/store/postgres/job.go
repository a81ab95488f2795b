package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	jobColumns = row.Columns(row.Job)
	insertJobs = insertInto("job", row.Job)
	readJobs   = wire.SQL("select " + row.Of("j", jobColumns) + ", " + row.Of("n", laneColumns) +
		" from job j join lane n on n.id = j.lane" +
		" where j.id = any($1::uuid[])")
)

// readSpec reads a job and its lane.
func readSpec(c *row.Codec) *rules.Spec {
	s := &rules.Spec{}
	row.Job(c, s)
	row.Lane(c, &s.Lane)
	return s
}

// Insert implements scheduler.JobTx.
func (t *tx) Insert(_ context.Context, specs []*rules.Spec) error {
	if len(specs) == 0 {
		return t.err
	}
	formCohorts(specs)
	r := rowsOf(&t.view, specs, func(c *row.Codec, s **rules.Spec) { row.Job(c, *s) })
	t.inserted = append(t.inserted, specs...)
	_ = t.write("insert jobs", wire.Step{Stmt: insertJobs, Rows: r}) // kept in t.err
	t.insertRuns(specs)
	return t.err
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
		c := decode(r)
		s := readSpec(c)
		into[s.ID] = s
		return c.Err
	}, wire.IDs(ids))
}

// Specs implements scheduler.View. Those of jobs that came to this node lately are at hand.
func (t *tx) Specs(_ context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Spec, error) {
	specs := make(map[lessor.JobID]*rules.Spec, len(ids))
	var unknown []lessor.JobID
	for _, id := range ids {
		if s := t.specAtHand(id); s != nil {
			specs[id] = s
		} else {
			unknown = append(unknown, id)
		}
	}
	return specs, t.specs(unknown, specs)
}

// SpecsAt implements scheduler.Tx.
func (t *tx) SpecsAt(_ context.Context, turns []rules.Turn) ([]*rules.Spec, error) {
	specs := make([]*rules.Spec, len(turns))
	var unknown []lessor.JobID
	for i := range turns {
		if specs[i] = t.specAtHand(turns[i].Job); specs[i] == nil {
			unknown = append(unknown, turns[i].Job)
		}
	}
	if len(unknown) == 0 {
		return specs, t.err
	}
	read := make(map[lessor.JobID]*rules.Spec, len(unknown))
	err := t.specs(unknown, read)
	for i := range turns {
		if specs[i] == nil {
			specs[i] = read[turns[i].Job]
		}
	}
	return specs, err
}

// specAtHand returns a spec without reading it; nil if that cannot be.
func (t *tx) specAtHand(id lessor.JobID) *rules.Spec {
	if s := t.store.specs.Find(id); s != nil {
		return s
	}
	for _, s := range t.inserted { // in this very transaction
		if s.ID == id {
			return s
		}
	}
	return nil
}
