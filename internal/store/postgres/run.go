package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	insertRuns = insertInto("definition_job", row.OpenRun)
	// closeRuns looks up each job in a query of its own, by both columns of the key. In a join the planner may read all
	// jobs of the definition for each.
	closeRuns = wire.Plural("update definition_job set open = false where ctid = any(array("+
		"select (select i.ctid from definition_job i where i.definition = u.definition and i.job = u.job)"+
		" from ({rows}) u))", "tu", "definition, job")
	// readOpenRuns reads the first open jobs of each definition. A job is claimed from its first lease on, wherever it
	// is.
	readOpenRuns = wire.SQL("select d.id, o.job, coalesce(q.fence, w.fence, l.fence, 0) > 0" +
		" from (" + wire.Unnest("tu", "id, tenant") + ") d" +
		" cross join lateral (select i.job from definition_job i join job s on s.id = i.job" +
		" join lane n on n.id = s.lane" +
		" where i.definition = d.id and i.open and n.tenant = d.tenant order by i.job limit $3::bigint) o" +
		" join job j on j.id = o.job left join queue q on " + wire.At("q.seq", "j.seq") + " and q.job = j.id" +
		" left join delayed w on " + wire.At("w.seq", "j.seq") + " and w.job = j.id" +
		" left join lease l on " + wire.At("l.seq", "j.seq") + " and l.job = j.id order by d.id, o.job")
)

// insertRuns lists new jobs under their definitions.
func (t *tx) insertRuns(specs []*rules.Spec) {
	var of []*rules.Spec
	for _, s := range specs {
		if s.Lane.Definition != "" {
			of = append(of, s)
		}
	}
	_ = save(t, "insert jobs of definitions", insertRuns, of, // kept in t.err
		func(c *row.Codec, s **rules.Spec) { row.OpenRun(c, *s) })
}

// closeRuns follows jobs of definitions into done.
func (t *tx) closeRuns(moves []scheduler.Move) {
	t.put(moves, "close runs", closeRuns,
		func(m *scheduler.Move) bool { return m.To == rules.Ended && t.owners[laneOf(m)].definition != "" },
		func(c *row.Codec, m *scheduler.Move) {
			definition := t.owners[laneOf(m)].definition
			row.Text(c, "definition", &definition)
			row.ID(c, "job", &m.Done.Attempt.Turn.Job.UUID)
		})
}

// OpenRuns implements scheduler.View.
func (v *view) OpenRuns(
	_ context.Context, definitions []*rules.Definition, limit int,
) (map[string][]scheduler.OpenRun, error) {
	open := make(map[string][]scheduler.OpenRun)
	if len(definitions) == 0 || v.err != nil {
		return open, v.err
	}
	r := v.scratch.Reset()
	for _, d := range definitions {
		r.Next()
		r.Text(d.ID)
		r.ID(d.Tenant.UUID)
	}
	err := v.query("read open runs", readOpenRuns, func(r *wire.Row) error {
		definition := r.Text()
		run := scheduler.OpenRun{Job: lessor.JobID{UUID: r.ID()}, Claimed: r.Flag()}
		open[definition] = append(open[definition], run)
		return nil
	}, append(r.Params(), wire.Limit(limit))...)
	return open, err
}
