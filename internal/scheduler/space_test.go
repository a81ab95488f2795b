package scheduler_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// onBothStores runs test on SQLite, and on two nodes that share a PostgreSQL database.
func onBothStores(t *testing.T, cfg scheduler.Config, test func(t *testing.T, a, b *world)) {
	t.Run("sqlite", func(t *testing.T) {
		inWorld(t, cfg, func(t *testing.T, w *world) { test(t, w, w) })
	})
	t.Run("postgres", func(t *testing.T) {
		ws := nodes(t, 2, cfg, nil)
		test(t, ws[0], ws[1])
	})
}

func tenantOf(n byte) *lessor.TenantID { return &lessor.TenantID{UUID: lessor.UUID{15: n}} }

// workerOf calls with a worker's token of a tenant; nil = of none.
func workerOf(tenant *lessor.TenantID, token byte) scheduler.Caller {
	return scheduler.Caller{
		Actor: "worker", Tenant: tenant, Token: lessor.TokenID{UUID: lessor.UUID{15: token}}, Worker: true,
	}
}

func of(tenant *lessor.TenantID) func(*lessor.Submission) {
	return func(s *lessor.Submission) { s.TenantID = new(tenant.String()) }
}

// askAs requests leases as a caller, and fails the test if that is refused.
func (w *world) askAs(c scheduler.Caller, worker string, edit func(*lessor.LeaseRequest)) []lessor.Grant {
	w.t.Helper()
	r := lessor.LeaseRequest{WorkerID: &worker}
	if edit != nil {
		edit(&r)
	}
	grants, _, err := w.Request(w.ctx, c, r)
	if err != nil {
		w.t.Errorf("request by %s: %v", worker, err)
	}
	return grants
}

func jobsOf(grants []lessor.Grant) (ids []lessor.JobID) {
	for _, g := range grants {
		ids = append(ids, g.Job.ID)
	}
	return ids
}

// TestRequestIDsAreOfOneTenant has three callers use the same names of worker and request: each gets its own grant,
// again and again.
func TestRequestIDsAreOfOneTenant(t *testing.T) {
	onBothStores(t, config(), func(t *testing.T, a, b *world) {
		named := func(r *lessor.LeaseRequest) { r.RequestID, r.WaitMS = new("r-1"), new(int64(5000)) }
		callers := []scheduler.Caller{workerOf(tenantOf(1), 1), workerOf(tenantOf(2), 2), workerOf(nil, 3)}
		var first []lessor.Grant
		for i, c := range callers {
			tenant := c.Tenant
			if tenant == nil {
				tenant = tenantOf(9)
			}
			job := a.submit(of(tenant))
			got := []*world{a, b}[i%2].askAs(c, "w1", named)
			if len(got) != 1 || got[0].Job.ID != job.ID {
				t.Fatalf("caller %d is granted %v, want its own job %v", i, jobsOf(got), job.ID)
			}
			first = append(first, got[0])
		}
		for i, c := range callers {
			got := []*world{b, a}[i%2].askAs(c, "w1", named)
			if len(got) != 1 || got[0].Lease.ID != first[i].Lease.ID {
				t.Errorf("caller %d asks again and gets %v, want its own lease of before", i, got)
			}
		}
		a.noDrift()
		b.noDrift()
	})
}

// TestParkedTwinsAreOfOneTenant: the grant of a waiting request is not shown to another tenant's request with the same
// id.
func TestParkedTwinsAreOfOneTenant(t *testing.T) {
	onBothStores(t, config(), func(t *testing.T, a, b *world) {
		named := func(r *lessor.LeaseRequest) { r.RequestID, r.WaitMS = new("r-1"), new(int64(20_000)) }
		one, two := tenantOf(1), tenantOf(2)
		var all sync.WaitGroup
		got := make([][]lessor.Grant, 4)
		for i := range got {
			all.Go(func() {
				c := workerOf([]*lessor.TenantID{one, two}[i%2], byte(i%2))
				got[i] = a.askAs(c, "w1", named)
			})
		}
		time.Sleep(300 * time.Millisecond) // all wait; those that do not yet are served at once
		theirs := b.submit(of(two))
		time.Sleep(300 * time.Millisecond)
		ours := b.submit(of(one))
		all.Wait()
		for i, want := range []lessor.JobID{ours.ID, theirs.ID, ours.ID, theirs.ID} {
			if !slices.Equal(jobsOf(got[i]), []lessor.JobID{want}) {
				t.Errorf("request %d is granted %v, want %v", i, jobsOf(got[i]), want)
			}
		}
	})
}

// TestParkedTwinsOfTwoNodesGetOneGrant: a request that waits on one node is answered with what its repeat was granted
// on another.
func TestParkedTwinsOfTwoNodesGetOneGrant(t *testing.T) {
	onBothStores(t, config(), func(t *testing.T, a, b *world) {
		named := func(r *lessor.LeaseRequest) { r.RequestID, r.WaitMS = new("r-1"), new(int64(10_000)) }
		var all sync.WaitGroup
		got := make([][]lessor.Grant, 2)
		for i, w := range []*world{a, b} {
			all.Go(func() { got[i] = w.askAs(workerOf(tenantOf(1), 1), "w1", named) })
		}
		time.Sleep(300 * time.Millisecond) // both wait; one that does not yet is served at once
		job := a.submit(of(tenantOf(1)))
		all.Wait()
		for i := range got {
			if !slices.Equal(jobsOf(got[i]), []lessor.JobID{job.ID}) {
				t.Fatalf("request %d is granted %v, want %v", i, jobsOf(got[i]), job.ID)
			}
		}
		if one, two := got[0][0].Lease.ID, got[1][0].Lease.ID; one != two {
			t.Errorf("leases %s and %s, want one", one, two)
		}
	})
}

// TestSimultaneousRepeatsListEachLeaseOnce repeats a request many times at once, on every node.
func TestSimultaneousRepeatsListEachLeaseOnce(t *testing.T) {
	onBothStores(t, config(), func(t *testing.T, a, b *world) {
		for range 3 {
			a.submit(nil)
		}
		ask := func(r *lessor.LeaseRequest) {
			r.RequestID, r.MaxLeases, r.WaitMS = new("r-1"), new(int64(3)), new(int64(5000))
		}
		want := jobsOf(a.askAs(anybody, "w1", ask))
		if len(want) != 3 {
			t.Fatalf("%d jobs are granted, want 3", len(want))
		}
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				got := jobsOf([]*world{a, b}[i%2].askAs(anybody, "w1", ask))
				slices.SortFunc(got, func(x, y lessor.JobID) int { return strings.Compare(x.String(), y.String()) })
				if len(slices.Compact(slices.Clone(got))) != 3 || len(got) != 3 {
					t.Errorf("a repeated request lists %d leases, want each of 3 once", len(got))
				}
			})
		}
		all.Wait()
	})
}

// TestRepeatedRequestAnswersTheTimeLeft: a worker that gets its lease late, and beats when the answer says,
// keeps it.
func TestRepeatedRequestAnswersTheTimeLeft(t *testing.T) {
	cfg := config()
	cfg.TTL = 6 * time.Second
	onBothStores(t, cfg, func(t *testing.T, a, b *world) {
		a.submit(nil)
		ask := func(r *lessor.LeaseRequest) { r.RequestID = new("r-1") }
		a.lease("w1", ask)
		time.Sleep(4500 * time.Millisecond)
		g := b.lease("w1", ask)
		if g.Lease.TTLMS > 1500 || g.Lease.HeartbeatAfterMS > 500 || g.Lease.HeartbeatAfterMS < 1 {
			t.Errorf("1.5 s before the end: ttl_ms %d, heartbeat_after_ms %d", g.Lease.TTLMS, g.Lease.HeartbeatAfterMS)
		}
		time.Sleep(time.Duration(g.Lease.HeartbeatAfterMS) * time.Millisecond)
		if ans := b.mustBeat(g); ans.HeartbeatAfterMS != 2000 {
			t.Errorf("heartbeat_after_ms is %d after a beat, want a third of the ttl again", ans.HeartbeatAfterMS)
		}
	})
}

// TestWorkerNamesAreOfOneTenant: a worker of another tenant that has the same name neither denies a unique job nor
// shows.
func TestWorkerNamesAreOfOneTenant(t *testing.T) {
	onBothStores(t, config(), func(t *testing.T, a, b *world) {
		one, two := workerOf(tenantOf(1), 1), workerOf(tenantOf(2), 2)
		unique := func(s *lessor.Submission) { of(one.Tenant)(s); s.Unique = new(true) }
		holds := func(w *world, c scheduler.Caller) []int {
			list, err := w.Workers(w.ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			var leases []int
			for _, l := range list {
				leases = append(leases, l.Leases)
			}
			return leases
		}
		a.submit(of(two.Tenant))
		theirs := a.askAs(two, "w1", waiting(5000))
		if len(theirs) != 1 {
			t.Fatal("the other tenant's job is not granted")
		}
		b.askAs(one, "w1", nil)
		if got := holds(b, one); !slices.Equal(got, []int{0}) {
			t.Errorf("the worker holds %v leases, want none: they are another tenant's", got)
		}
		b.submit(unique)
		b.submit(unique)
		ours := b.askAs(one, "w1", waiting(5000))
		if len(ours) != 1 {
			t.Fatal("a unique job is denied to a worker that holds nothing")
		}
		if more := a.askAs(one, "w1", nil); len(more) != 0 {
			t.Error("a second unique job is granted to the same worker")
		}
		if more := a.askAs(one, "w2", waiting(5000)); len(more) != 1 {
			t.Error("the second unique job is denied to another worker")
		}
		b.noDrift()
		if err := b.Complete(b.ctx, two, theirs[0].Lease.ID, lessor.Completion{
			WorkerID: new("w1"), Status: new("completed"),
		}); err != nil {
			t.Error(err)
		}
		if got := holds(b, one); !slices.Equal(got, []int{1}) && !slices.Equal(got, []int{1, 1}) {
			t.Errorf("the workers hold %v leases, want one each", got)
		}
		a.noDrift()
		b.noDrift()
	})
}

// TestLeaseIsItsHoldersAlone: who may list a lease, see its id, and speak for its worker.
func TestLeaseIsItsHoldersAlone(t *testing.T) {
	onBothStores(t, config(), func(t *testing.T, a, b *world) {
		tenant := tenantOf(1)
		taker := workerOf(tenant, 1)
		operator := scheduler.Caller{Actor: "operator", Tenant: tenant, Token: lessor.TokenID{UUID: lessor.UUID{15: 3}}}
		for _, c := range []struct {
			name  string
			by    scheduler.Caller
			lists bool // the lease, and its id on the job
			code  lessor.Code
		}{
			{"the token that took it", taker, true, ""},
			{"a new token of the worker", workerOf(tenant, 2), false, ""},
			{"an operator of the tenant", operator, true, lessor.CodeWorkerMismatch},
			{"an operator of all", scheduler.Caller{
				Actor: "admin", Token: lessor.TokenID{UUID: lessor.UUID{15: 4}},
			}, true, lessor.CodeWorkerMismatch},
			{"a worker's token of no tenant", workerOf(nil, 5), false, lessor.CodeWorkerMismatch},
			{"a caller without a token", anybody, true, lessor.CodeWorkerMismatch},
			{"a worker's token of another tenant", workerOf(tenantOf(2), 6), false, lessor.CodeLeaseNotFound},
		} {
			job := a.submit(of(tenant))
			grants := a.askAs(taker, "w1", waiting(5000))
			if len(grants) != 1 {
				t.Fatalf("%s: no lease to speak of", c.name)
			}
			g := grants[0]
			list, _, err := b.Leases(b.ctx, c.by, "", 100, "")
			if err != nil {
				t.Fatal(err)
			}
			isIt := func(l lessor.Lease) bool { return l.ID == g.Lease.ID }
			if lists := slices.ContainsFunc(list, isIt); lists != c.lists {
				t.Errorf("%s: lists it: %v, want %v", c.name, lists, c.lists)
			}
			if j, err := b.Job(b.ctx, c.by, job.ID); err == nil && (j.LeaseID != nil) != c.lists {
				t.Errorf("%s: sees its id on the job: %v, want %v", c.name, j.LeaseID != nil, c.lists)
			}
			_, beat := b.Heartbeat(b.ctx, c.by, g.Lease.ID, lessor.Heartbeat{WorkerID: new("w1")})
			end := b.Complete(b.ctx, c.by, g.Lease.ID,
				lessor.Completion{WorkerID: new("w1"), Status: new("completed"), Result: []byte(`"forged"`)})
			if lessor.CodeOf(beat) != c.code || lessor.CodeOf(end) != c.code {
				t.Errorf("%s: heartbeat %v, completion %v; want %q", c.name, beat, end, c.code)
			}
			if c.code != "" {
				if err := a.Complete(a.ctx, taker, g.Lease.ID, lessor.Completion{
					WorkerID: new("w1"), Status: new("completed"),
				}); err != nil {
					t.Errorf("%s: its holder can no longer complete it: %v", c.name, err)
				}
			}
		}
	})
}

// TestRecordNamesTheTokenBesideTheWorker: a worker that calls itself "scheduler" is not taken for it.
func TestRecordNamesTheTokenBesideTheWorker(t *testing.T) {
	onBothStores(t, config(), func(t *testing.T, a, b *world) {
		c := workerOf(tenantOf(1), 1)
		c.Actor = "ci"
		job := a.submit(of(c.Tenant))
		g := a.askAs(c, rules.ActorScheduler, waiting(5000))[0]
		other := workerOf(tenantOf(1), 2)
		other.Actor = "ci2"
		if _, err := b.Heartbeat(b.ctx, other, g.Lease.ID, lessor.Heartbeat{
			WorkerID: new(rules.ActorScheduler),
		}); err != nil {
			t.Fatal(err)
		}
		if err := b.Release(b.ctx, other, g.Lease.ID, lessor.Release{WorkerID: new(rules.ActorScheduler)}); err != nil {
			t.Fatal(err)
		}
		g = a.askAs(c, rules.ActorScheduler, waiting(5000))[0]
		if err := b.Revoke(b.ctx, anybody, g.Lease.ID, "why"); err != nil {
			t.Fatal(err)
		}
		events, _, err := a.Events(a.ctx, anybody, job.ID, 100, "")
		if err != nil {
			t.Fatal(err)
		}
		var actors []string
		for _, e := range events {
			actors = append(actors, e.Actor)
		}
		want := []string{"tester", "ci/scheduler", "ci/scheduler", "ci2/scheduler", "ci/scheduler", "tester"}
		if !slices.Equal(actors, want) {
			t.Errorf("the actors of the record are %q, want %q", actors, want)
		}
	})
}

// TestLeasePagesRevealNothing goes through the list by its cursors, which hold no number that can be read.
func TestLeasePagesRevealNothing(t *testing.T) {
	onBothStores(t, config(), func(t *testing.T, a, _ *world) {
		want := map[lessor.LeaseID]bool{}
		for range 7 {
			a.submit(nil)
			want[a.lease("w1", nil).Lease.ID] = true
		}
		var cursors []string
		for cursor := ""; ; {
			page, next, err := a.Leases(a.ctx, anybody, "", 2, cursor)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range page {
				if !want[l.ID] {
					t.Errorf("lease %v is listed twice", l.ID)
				}
				delete(want, l.ID)
			}
			if cursor = next; cursor == "" {
				break
			}
			cursors = append(cursors, cursor)
		}
		if len(want) != 0 || len(cursors) != 3 {
			t.Errorf("%d leases are not listed, %d cursors", len(want), len(cursors))
		}
		if len(cursors) > 1 && cursors[0][:8] == cursors[1][:8] {
			t.Errorf("cursors %v begin alike", cursors)
		}
		_, _, err := a.Leases(a.ctx, anybody, "", 2, strings.Repeat("A", 22))
		if lessor.CodeOf(err) != lessor.CodeInvalidValue {
			t.Errorf("a made-up cursor: %v", err)
		}
	})
}
