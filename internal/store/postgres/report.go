package postgres

import (
	"bytes"
	"context"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	reportColumns = row.Columns(row.Report)
	mergeReports  = wire.Plural("insert into report as r ("+reportColumns+") {rows}"+
		" on conflict (job) do update set progress = coalesce(excluded.progress, r.progress),"+
		" message = coalesce(excluded.message, r.message), checkpoint = coalesce(excluded.checkpoint, r.checkpoint),"+
		" at = excluded.at,"+
		" highest = greatest(excluded.highest, r.highest),"+ // of one null it is the other
		" mark_checkpoint = case when excluded.mark_progress is null then r.mark_checkpoint"+
		" else excluded.mark_checkpoint end,"+
		" mark_progress = coalesce(excluded.mark_progress, r.mark_progress),"+
		" question = coalesce(excluded.question, r.question),"+
		" journal_entries = coalesce(excluded.journal_entries, r.journal_entries),"+
		" sent = greatest(excluded.sent, r.sent), seen = greatest(excluded.seen, r.seen)",
		row.Kinds(row.Report), reportColumns)
	readReports = wire.SQL("select " + reportColumns + " from report where job = any($1::uuid[])")
)

// SaveReports implements scheduler.Tx.
func (t *tx) SaveReports(_ context.Context, reports []rules.Report) error {
	return save(t, "save reports", mergeReports, mergeTwins(reports), row.Report)
}

// mergeTwins makes one report a job, in the order of jobs: one statement cannot change a row twice, and all nodes lock
// in one order.
func mergeTwins(reports []rules.Report) []rules.Report {
	sorted := slices.Clone(reports)
	slices.SortStableFunc(sorted, func(a, b rules.Report) int { return bytes.Compare(a.Job.UUID[:], b.Job.UUID[:]) })
	merged := sorted[:0]
	for _, r := range sorted {
		n := len(merged)
		if n == 0 || merged[n-1].Job != r.Job {
			merged = append(merged, r)
			continue
		}
		merged[n-1] = merged[n-1].Merge(r)
	}
	return merged
}

// Reports implements scheduler.View.
func (v *view) Reports(_ context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Report, error) {
	reports := make(map[lessor.JobID]*rules.Report)
	if len(ids) == 0 || v.err != nil {
		return reports, v.err
	}
	err := v.query("read reports", readReports, func(r *wire.Row) error {
		report := &rules.Report{}
		row.Report(decode(r), report)
		reports[report.Job] = report
		return nil
	}, wire.IDs(ids))
	return reports, err
}
