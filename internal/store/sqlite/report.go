package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

const (
	reportColumns = "job, progress, message, checkpoint, at, highest, mark_progress, mark_checkpoint"
	saveReport    = "insert into report (" + reportColumns + ") values (?, ?, ?, ?, ?, ?, ?, ?)" +
		" on conflict (job) do update set progress = coalesce(excluded.progress, progress)," +
		" message = coalesce(excluded.message, message), checkpoint = coalesce(excluded.checkpoint, checkpoint), at = excluded.at," +
		" highest = coalesce(max(excluded.highest, highest), excluded.highest, highest)," + // max of a null is null
		" mark_checkpoint = iif(excluded.mark_progress is null, mark_checkpoint, excluded.mark_checkpoint)," +
		" mark_progress = coalesce(excluded.mark_progress, mark_progress)"
	readReport = "select " + reportColumns + " from report where job = ?"
)

// SaveReports implements scheduler.Tx.
func (t *tx) SaveReports(_ context.Context, reports []rules.Report) error {
	return t.do("save reports", func() error {
		for i := range reports {
			bindReport(&args{stmt: t.w.saveReport}, &reports[i])
			if err := exec(t.w.saveReport); err != nil {
				return err
			}
		}
		return nil
	})
}

func bindReport(a *args, r *rules.Report) {
	a.id(r.Job.UUID)
	bindRealOrNull(a, r.Progress)
	if r.Message != nil {
		a.text(*r.Message)
	} else {
		a.null()
	}
	a.blobOrNull(r.Checkpoint)
	a.instant(r.At)
	bindRealOrNull(a, r.Highest)
	if r.Mark == nil {
		a.null()
		a.null()
		return
	}
	a.real(r.Mark.Progress)
	a.blobOrNull(r.Mark.Checkpoint)
}

func bindRealOrNull(a *args, f *float64) {
	if f == nil {
		a.null()
		return
	}
	a.real(*f)
}

// Reports implements scheduler.View.
func (v *view) Reports(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Report, error) {
	reports := make(map[lessor.JobID]*rules.Report)
	for _, id := range ids {
		report, err := v.report(id)
		if err != nil {
			return nil, readFault(ctx, "read reports", err)
		}
		if report != nil {
			reports[id] = report
		}
	}
	return reports, nil
}

func (v *view) report(id lessor.JobID) (report *rules.Report, err error) {
	err = query(v.conn, readReport, func(a *args) { a.id(id.UUID) }, func(r *row) error {
		report = &rules.Report{
			Job:        lessor.JobID{UUID: r.id()},
			Progress:   r.realOrNil(),
			Message:    r.textOrNil(),
			Checkpoint: r.blob(),
			At:         r.instant(),
			Highest:    r.realOrNil(),
		}
		if p, c := r.realOrNil(), r.blob(); p != nil {
			report.Mark = &rules.Mark{Progress: *p, Checkpoint: c}
		}
		return nil
	})
	return report, err
}
