package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// shortLived removes ended jobs at once, and lanes soon after.
func shortLived() (scheduler.Config, func(*scheduler.Scheduler)) {
	cfg := config()
	cfg.TotalUnits = 1000
	cfg.Retention = scheduler.Retention{Jobs: time.Millisecond, Audit: time.Millisecond}
	return cfg, func(s *scheduler.Scheduler) { s.SweepLanesEvery(300 * time.Millisecond) }
}

// lockKeys runs one job for each of n lock keys.
func (w *world) lockKeys(n int) {
	w.t.Helper()
	const page = 500
	worker := "worker-1"
	for i := 0; i < n; i += page {
		subs := make([]lessor.Submission, page)
		for j := range subs {
			subs[j].Type, subs[j].LockKey = new("generic"), new(fmt.Sprintf("key-%d", i+j))
		}
		if _, err := w.SubmitBatch(w.ctx, anybody, subs); err != nil {
			w.t.Fatal(err)
		}
		for left := page; left > 0; {
			grants, _ := w.askMany(worker, func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(page)) })
			ends := make([]lessor.LeaseCompletion, len(grants))
			for i, g := range grants {
				ends[i] = lessor.LeaseCompletion{LeaseID: new(g.Lease.ID.String()), Status: new("completed")}
			}
			if _, err := w.CompleteAll(w.ctx, anybody, worker, ends); err != nil || len(ends) == 0 {
				w.t.Fatalf("complete %d of %d: %v", len(ends), left, err)
			}
			left -= len(ends)
		}
	}
}

// storedLanes counts the rows of lanes.
func (w *world) storedLanes() (n int) {
	w.t.Helper()
	err := w.store.View(w.ctx, func(v scheduler.View) error {
		return v.EachLane(w.ctx, func(rules.LaneID, rules.Lane) error {
			n++
			return nil
		})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// emptied waits until all rows of lanes are gone except for those that say which numbers were given.
func (w *world) emptied() {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		n := w.storedLanes()
		if n <= 1 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%d lanes are left after all jobs are gone, want none but the newest", n)
		}
	}
}

func TestLanesAreRemovedWithTheirJobs(t *testing.T) {
	cfg, _ := shortLived()
	inWorld(t, cfg, func(t *testing.T, w *world) {
		w.lockKeys(2000)
		time.Sleep(2 * time.Hour) // the first sweep, and the first one after the notice
		if n := w.storedLanes(); n < 2000 {
			t.Errorf("%d lanes are left before they were on notice for an hour, want all", n)
		}
		time.Sleep(time.Hour + 5*time.Minute)
		w.emptied()
		w.submitAndGrant("key-7")
	})
}

// TestLanesAreRemovedOnAllNodes has one node keep the numbers of lanes that both put on notice and remove: it registers
// them again.
func TestLanesAreRemovedOnAllNodes(t *testing.T) {
	cfg, soon := shortLived()
	url := pool.Database(t)
	a, b := node(t, url, cfg, nil, soon), node(t, url, cfg, nil, soon)
	a.lockKeys(5000)
	b.lockKeys(1000)
	a.emptied()
	b.submitAndGrant("key-7")
	a.submitAndGrant("key-8")
	a.emptied()
	a.submitAndGrant("key-7")
}

// submitAndGrant submits a job with a lock key, and completes it.
func (w *world) submitAndGrant(key string) {
	w.t.Helper()
	job := w.submit(func(s *lessor.Submission) { s.LockKey = new(key) })
	g, _ := w.ask("worker-1", nil)
	if g == nil || g.Job.ID != job.ID {
		w.t.Fatalf("asked for the job with lock key %s, received %+v", key, g)
	}
	w.mustComplete(*g, "completed")
	w.noDrift()
}
