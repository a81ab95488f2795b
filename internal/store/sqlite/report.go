package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/row"
)

var (
	reportColumns = row.Columns(row.Report)
	saveReport    = insertOne("insert into report", reportColumns) +
		" on conflict (job) do update set progress = coalesce(excluded.progress, progress)," +
		" message = coalesce(excluded.message, message)," +
		" checkpoint = coalesce(excluded.checkpoint, checkpoint), at = excluded.at," +
		" highest = coalesce(max(excluded.highest, highest), excluded.highest, highest)," + // max of a null is null
		" mark_checkpoint = iif(excluded.mark_progress is null, mark_checkpoint, excluded.mark_checkpoint)," +
		" mark_progress = coalesce(excluded.mark_progress, mark_progress)," +
		" question = coalesce(excluded.question, question)," +
		" journal_entries = coalesce(excluded.journal_entries, journal_entries)," +
		" sent = max(excluded.sent, sent), seen = max(excluded.seen, seen)"
	readReport = "select " + reportColumns + " from report where job = ?"
)

// SaveReports implements scheduler.Tx.
func (t *tx) SaveReports(_ context.Context, reports []rules.Report) error {
	return t.do("save reports", func() error {
		for i := range reports {
			row.Report(row.Write(&args{stmt: t.w.saveReport}), &reports[i])
			if err := exec(t.w.saveReport); err != nil {
				return err
			}
		}
		return nil
	})
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

func (v *view) report(id lessor.JobID) (*rules.Report, error) {
	return find(v.conn, readReport, func(a *args) { a.ID(id.UUID) }, row.Report)
}
