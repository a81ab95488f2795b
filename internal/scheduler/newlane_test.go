package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"lessor"
)

// newLanes are submissions that each make a new lane.
var newLanes = map[string]func(*lessor.Submission){
	"type":     func(*lessor.Submission) {}, // each job has a type of its own
	"tenant":   func(s *lessor.Submission) { s.TenantID = new("33333333-3333-4333-8333-333333333333") },
	"lock key": func(s *lessor.Submission) { s.LockKey = new("new") },
	"class":    func(s *lessor.Submission) { s.FairnessClass = new("new") },
}

// later are the ways in which a job waits for its time.
var later = map[string]func(w *world, sub lessor.Submission){
	"run_at": func(w *world, sub lessor.Submission) {
		w.submit(func(s *lessor.Submission) { *s = sub; s.RunAt = new(now().Add(300 * time.Millisecond).String()) })
	},
	"retry": func(w *world, sub lessor.Submission) {
		w.submit(func(s *lessor.Submission) { *s = sub })
		w.mustComplete(w.lease("before", ofType(*sub.Type)), "failed")
	},
	"delay": func(w *world, sub lessor.Submission) {
		w.submit(func(s *lessor.Submission) { *s = sub })
		g := w.lease("before", ofType(*sub.Type))
		if err := w.Release(w.ctx, anybody, g.Lease.ID, lessor.Release{
			WorkerID: &g.Lease.WorkerID, DelayMS: new(int64(300)),
		}); err != nil {
			w.t.Fatalf("release with a delay: %v", err)
		}
	},
}

func ofType(types ...string) func(*lessor.LeaseRequest) {
	return func(r *lessor.LeaseRequest) { r.Types, r.WaitMS = types, new(int64(10_000)) }
}

// TestNewLanesComeDueOnAnotherNode: jobs that wait for their time at one node come due at others, which have never seen
// their lanes.
func TestNewLanesComeDueOnAnotherNode(t *testing.T) {
	ws := nodes(t, 3, config(), nil)
	first := ws[2] // it came last, so it knows that it is not alone and publishes its changes
	var types []string
	for how, wait := range later {
		for what, edit := range newLanes {
			types = append(types, how+" of a new "+what)
			sub := lessor.Submission{Type: &types[len(types)-1]}
			edit(&sub)
			sub.LockKey = prefixed(sub.LockKey, how)
			wait(first, sub)
		}
	}
	first.halt()
	for i, typ := range types {
		w := ws[i%2]
		w.mustComplete(w.lease("after", ofType(typ)), "completed")
	}
	for _, w := range ws[:2] {
		w.noDrift()
	}
}

func prefixed(key *string, with string) *string {
	if key == nil {
		return nil
	}
	return new(with + *key)
}

// TestOperatorsChangeJobsOfNewLanes: an operator cancels and retries at one node what was submitted at another for
// later.
func TestOperatorsChangeJobsOfNewLanes(t *testing.T) {
	ws := nodes(t, 2, config(), nil)
	// both have then noticed each other and publish their changes; if not, they rebuild their folds
	time.Sleep(time.Second)
	here, there := ws[0], ws[1]
	for what, edit := range newLanes {
		job := here.submit(func(s *lessor.Submission) {
			s.Type, s.RunAt = new("by hand, new "+what), new(now().Add(3*time.Second).String())
			edit(s)
		})
		retry(there, func() (lessor.Job, error) { return there.Cancel(there.ctx, anybody, job.ID, false) })
		retry(there, func() (lessor.Job, error) { return there.Retry(there.ctx, anybody, job.ID) })
		retry(there, func() (lessor.Why, error) { return there.Why(there.ctx, anybody, job.ID) })
		here.mustComplete(insistOn(here, job.Type, nil), "completed")
		here, there = there, here
	}
	here.noDrift()
	there.noDrift()
}

// TestMissingLaneCostsOnlyItsJobs removes a lane from the database: only its jobs are affected, and Drift reports
// them.
func TestMissingLaneCostsOnlyItsJobs(t *testing.T) {
	url := pool.Database(t)
	before := node(t, url, config(), nil)
	before.submit(func(s *lessor.Submission) { s.Type = new("held") })
	held := before.lease("worker", ofType("held"))
	queued := before.submit(func(s *lessor.Submission) { s.Type = new("queued") })
	before.submit(func(s *lessor.Submission) {
		s.Type, s.RunAt = new("due"), new(now().Add(500*time.Millisecond).String())
	})
	before.halt()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "delete from lane"); err != nil {
		t.Fatal(err)
	}
	w := node(t, url, config(), nil)
	w.eventually("promoted", func() bool {
		n := 0
		return conn.QueryRow(t.Context(), "select count(*) from delayed").Scan(&n) == nil && n == 0
	})
	w.submit(nil)
	w.mustComplete(w.lease("worker", ofType("generic")), "completed")
	w.mustBeat(held)
	w.mustComplete(held, "completed")
	if _, d := w.ask("worker", nil); d == nil || d.Code != lessor.NoEligibleJob {
		t.Errorf("got %+v, want no job: nobody knows whose they are", d)
	}
	drift := w.Drift(w.ctx)
	if drift == nil || !strings.Contains(drift.Error(), "2 jobs") ||
		!strings.Contains(drift.Error(), queued.ID.String()) {
		t.Errorf("the check says %v, want two jobs named", drift)
	}
}

// TestJobThatContradictsItsLaneIsNotGranted: such a job does not block other jobs either.
func TestJobThatContradictsItsLaneIsNotGranted(t *testing.T) {
	url := pool.Database(t)
	before := node(t, url, config(), nil)
	before.submit(func(s *lessor.Submission) { s.Type = new("mine") })
	bad := before.submit(func(s *lessor.Submission) { s.Type, s.TenantID = new("theirs"), new(tenantB.String()) })
	before.halt()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "update queue set lane = (select id from lane where type = 'mine') where job = $1",
		bad.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	w := node(t, url, config(), nil)
	if g := insistOn(w, "mine", nil); g.Job.Type != "mine" {
		t.Errorf("asked for mine and got %s", g.Job.Type)
	}
	last := w.submit(func(s *lessor.Submission) { s.Type = new("mine") })
	if g := insistOn(w, "mine", nil); g.Job.ID != last.ID {
		t.Errorf("got job %v, want %v", g.Job.ID, last.ID)
	}
	if drift := w.Drift(w.ctx); drift == nil || !strings.Contains(drift.Error(), bad.ID.String()) {
		t.Errorf("the check says %v, want the job named", drift)
	}
}
