package scheduler_test

import (
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// TestRetentionKeepsUpWithWhatEnds ends thousands of jobs, which are kept for a second: the next run of retention
// removes all of them.
func TestRetentionKeepsUpWithWhatEnds(t *testing.T) {
	cfg := config()
	cfg.TotalUnits = 1000
	cfg.Retention = scheduler.Retention{Jobs: time.Second, Audit: 2 * time.Second}
	inWorld(t, cfg, func(t *testing.T, w *world) {
		const jobs, page = 8000, 500
		worker := "worker-1"
		for range jobs / page {
			subs := make([]lessor.Submission, page)
			for i := range subs {
				subs[i].Type = new("generic")
			}
			if _, err := w.SubmitBatch(w.ctx, anybody, subs); err != nil {
				t.Fatal(err)
			}
			grants, _ := w.askMany(worker, func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(page)) })
			ends := make([]lessor.LeaseCompletion, len(grants))
			for i, g := range grants {
				ends[i] = lessor.LeaseCompletion{LeaseID: new(g.Lease.ID.String()), Status: new("completed")}
			}
			if _, err := w.CompleteAll(w.ctx, anybody, worker, ends); err != nil || len(ends) != page {
				t.Fatalf("complete %d: %v", len(ends), err)
			}
		}
		time.Sleep(61 * time.Second) // while there is nothing to do, retention looks once a minute
		left := 0
		for cursor := ""; ; {
			list, next, err := w.Jobs(w.ctx, anybody, lessor.JobFilter{Limit: 1000, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			if left += len(list); next == "" {
				break
			}
			cursor = next
		}
		if left != 0 {
			t.Errorf("%d of %d jobs are left after a second of retention, want none", left, jobs)
		}
	})
}
