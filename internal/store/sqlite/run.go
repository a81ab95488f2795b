package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

const (
	markRun = "update definition_job set open = ? where definition = ? and job = ?"
	dropRun = "delete from definition_job where definition = ? and job = ?"
	// readOpened names its index: SQLite would choose the primary key, and step over all jobs that have ended.
	readOpened = "select job.seq, job.id from definition_job indexed by definition_job_open" +
		" cross join job on job.id = definition_job.job cross join lane on lane.id = job.lane" +
		" where open and definition_job.definition = ? and tenant = ? order by definition_job.job limit +?"
)

// insertRuns lists new jobs under their definitions.
func (t *tx) insertRuns(specs []*rules.Spec) error {
	var of []*rules.Spec
	for _, s := range specs {
		if s.Lane.Definition != "" {
			of = append(of, s)
		}
	}
	return t.w.run.insert(len(of), func(i int, c *row.Codec) { row.OpenRun(c, of[i]) })
}

// markRuns marks jobs of definitions as ended when they move to done, and as open when they leave it.
func (t *tx) markRuns(moves []scheduler.Move) error {
	for i := range moves {
		m := &moves[i]
		if (m.From == rules.Ended) == (m.To == rules.Ended) {
			continue
		}
		turn := &m.Turn
		if m.To == rules.Ended {
			turn = &m.Done.Attempt.Turn
		}
		lane, err := t.laneAt(turn.Lane)
		if err != nil {
			return err
		}
		if lane.Definition == "" {
			continue
		}
		a := args{stmt: t.w.markRun}
		a.Flag(m.To != rules.Ended)
		a.Text(lane.Definition)
		a.ID(turn.Job.UUID)
		if err := t.one(a.stmt); err != nil {
			return err
		}
	}
	return nil
}

// OpenRuns implements scheduler.View.
func (v *view) OpenRuns(
	ctx context.Context, definitions []*rules.Definition, limit int,
) (map[string][]scheduler.OpenRun, error) {
	open := make(map[string][]scheduler.OpenRun)
	for _, d := range definitions {
		runs, err := v.openRuns(d, limit)
		if err != nil {
			return nil, readFault(ctx, "read open runs", err)
		}
		if len(runs) > 0 {
			open[d.ID] = runs
		}
	}
	return open, nil
}

func (v *view) openRuns(d *rules.Definition, limit int) (runs []scheduler.OpenRun, err error) {
	err = query(v.conn, readOpened,
		func(a *args) {
			a.Text(d.ID)
			a.ID(d.Tenant.UUID)
			a.limit(limit)
		},
		func(r *result) error {
			s := &rules.Standing{Spec: &rules.Spec{Seq: r.Int(), ID: lessor.JobID{UUID: r.ID()}}}
			if err := v.findPlace(s); err != nil {
				return err
			}
			runs = append(runs, scheduler.OpenRun{Job: s.Spec.ID, Claimed: s.Turn.Fence != 0})
			return nil
		})
	return runs, err
}
