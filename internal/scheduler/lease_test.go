package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"lessor"
)

func TestFirstHeartbeatRunsTheJob(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		w.wantState(job.ID, lessor.Queued)
		g := w.lease("worker-1", nil)
		if g.Job.State != lessor.Leased || g.Job.Attempt != 1 || *g.Job.LeaseID != g.Lease.ID {
			t.Errorf("granted job is %s, attempt %d, lease %v; want leased, 1, %v", g.Job.State, g.Job.Attempt,
				g.Job.LeaseID, g.Lease.ID)
		}
		w.wantState(job.ID, lessor.Leased)
		w.mustBeat(g)
		w.wantState(job.ID, lessor.Running)
		w.mustComplete(g, "completed")
		w.wantState(job.ID, lessor.Completed)
		w.noDrift()
	})
}

func TestHeartbeatExtendsByTTLAndGrace(t *testing.T) {
	cfg := config()
	cfg.Grace = 5 * time.Second
	inWorld(t, cfg, func(t *testing.T, w *world) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		if got, want := g.Lease.ExpiresAt, g.Lease.IssuedAt.Add(65*time.Second); got != want {
			t.Errorf("granted until %v, want issued_at + ttl + grace = %v", got, want)
		}
		time.Sleep(40 * time.Second)
		a := w.mustBeat(g)
		if want := now().Add(65 * time.Second); a.ExpiresAt != want {
			t.Errorf("extended until %v, want now + ttl + grace = %v", a.ExpiresAt, want)
		}
		if want := (65 * time.Second / 3).Milliseconds(); a.HeartbeatAfterMS != want {
			t.Errorf("heartbeat_after_ms is %d, want a third of ttl + grace = %d", a.HeartbeatAfterMS, want)
		}
	})
}

func TestLeaseNotFoundComesBeforeWorkerMismatch(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		other := g
		other.Lease.WorkerID = "worker-2"
		_, err := w.beat(other)
		w.wantCode(err, lessor.CodeWorkerMismatch)
		w.mustComplete(g, "completed")
		_, err = w.beat(other)
		if e := w.wantCode(err, lessor.CodeLeaseNotFound); e.EndedReason != "completed" {
			t.Errorf("ended_reason is %q, want completed", e.EndedReason)
		}
		_, err = w.Heartbeat(
			w.ctx, anybody, lessor.LeaseID{UUID: lessor.UUID{1}}, lessor.Heartbeat{WorkerID: new("worker-1")},
		)
		w.wantCode(err, lessor.CodeLeaseNotFound)
	})
}

func TestDenialTexts(t *testing.T) {
	cfg := config()
	busy := 8
	cfg.Busy = &busy
	inWorld(t, cfg, func(t *testing.T, w *world) {
		_, d := w.ask("worker-1", nil)
		if d == nil || d.Code != lessor.NoEligibleJob || d.Reason != "No eligible jobs" || d.RetryAfterMS != 1500 {
			t.Errorf("empty queue: %+v", d)
		}
		for _, units := range []int64{6, 12, 4} {
			w.submit(func(s *lessor.Submission) { s.RequestedUnits = &units })
		}
		w.lease("worker-1", nil)
		if g := w.lease("worker-2", nil); g.Lease.CapacityUnits != 4 {
			t.Errorf(
				"granted %d units, want 4: the job of 12 is more than usable and is skipped", g.Lease.CapacityUnits,
			)
		}
		_, d = w.ask("worker-3", nil)
		want := lessor.Denial{
			Denied: true, Code: lessor.NoCapacity,
			Reason: "No capacity (busy=8, usable=10, leased=10)", RetryAfterMS: 1500,
		}
		if d == nil || *d != want {
			t.Errorf("full: %+v, want %+v", d, want)
		}
		if _, err := w.SetDraining(w.ctx, anybody, true); err != nil {
			t.Fatal(err)
		}
		_, d = w.ask("worker-3", nil)
		if d == nil || d.Code != lessor.Draining || d.RetryAfterMS != 5000 {
			t.Errorf("draining: %+v", d)
		}
	})
}

func TestJobTooLargeKeepsItsPlace(t *testing.T) {
	cfg := config()
	cfg.TotalUnits, cfg.ReserveUnits = 20, 0
	inWorld(t, cfg, func(t *testing.T, w *world) {
		units := func(n int64) func(*lessor.Submission) {
			return func(s *lessor.Submission) { s.RequestedUnits = &n }
		}
		w.submit(units(16))
		first := w.lease("worker-1", nil)
		large := w.submit(units(12))
		small := w.submit(units(1))
		_, d := w.ask("worker-2", nil)
		want := lessor.Denial{
			Denied: true, Code: lessor.NextJobTooLarge,
			Reason: "Next job needs 12 units but only 4 are available", RetryAfterMS: 2000,
		}
		if d == nil || *d != want {
			t.Fatalf("got %+v, want %+v: nothing smaller is handed out instead", d, want)
		}
		w.mustComplete(first, "completed")
		if g := w.lease("worker-2", nil); g.Job.ID != large.ID {
			t.Errorf("granted %v, want the large job that kept its place", g.Job.ID)
		}
		if g := w.lease("worker-2", nil); g.Job.ID != small.ID {
			t.Errorf("granted %v, want the small job", g.Job.ID)
		}
	})
}

func TestBackfillPassesALargeJobUntilItStarves(t *testing.T) {
	cfg := config()
	cfg.TotalUnits, cfg.ReserveUnits, cfg.Backfill = 20, 0, true
	inWorld(t, cfg, func(t *testing.T, w *world) {
		units := func(n int64) func(*lessor.Submission) {
			return func(s *lessor.Submission) { s.RequestedUnits = &n }
		}
		w.submit(units(16))
		hour := func(r *lessor.LeaseRequest) { r.TTLMS = new(time.Hour.Milliseconds()) }
		first := w.lease("worker-1", hour)
		large := w.submit(units(12))
		for range 3 {
			w.submit(units(1))
		}
		w.lease("worker-2", hour)
		time.Sleep(59 * time.Second)
		w.lease("worker-2", hour)
		time.Sleep(time.Second)
		_, d := w.ask("worker-3", nil)
		if d == nil || d.Code != lessor.NextJobTooLarge {
			t.Fatalf("after 60 s: %+v, want %s: free units are kept", d, lessor.NextJobTooLarge)
		}
		w.mustComplete(first, "completed")
		if g := w.lease("worker-3", nil); g.Job.ID != large.ID {
			t.Errorf("granted %v, want the job that starved", g.Job.ID)
		}
		w.lease("worker-3", nil)
	})
}

// TestStarvedJobAndOneThatNeedsAllDoNotBlockEachOther has a small job starve while it is first, and then one come first
// that needs all units. The units of the small one are kept for it, and so the large one cannot run before it.
func TestStarvedJobAndOneThatNeedsAllDoNotBlockEachOther(t *testing.T) {
	cfg := config()
	cfg.TotalUnits, cfg.ReserveUnits = 20, 0
	inWorld(t, cfg, func(t *testing.T, w *world) {
		w.submitUnits("first", 18)
		first := w.lease("worker-1", asksFor("first"))
		w.submitUnits("starved", 4)
		if _, d := w.ask("worker-2", nil); d == nil || d.Code != lessor.NextJobTooLarge {
			t.Fatalf("the starving job: %+v, want %s", d, lessor.NextJobTooLarge)
		}
		time.Sleep(time.Minute)
		w.submit(func(s *lessor.Submission) { s.RequestedUnits, s.Priority = new(int64(20)), new("high") })
		w.mustComplete(first, "completed")
		g := w.lease("worker-2", nil)
		if g.Job.Type != "starved" {
			t.Errorf("granted %s, want the job for which units were kept", g.Job.Type)
		}
		w.mustComplete(g, "completed")
		w.lease("worker-2", nil)
	})
}

// submitUnits submits a job of a type and size, and asksFor asks for one of the type, for an hour.
func (w *world) submitUnits(typ string, units int64) {
	w.t.Helper()
	w.submit(func(s *lessor.Submission) { s.Type, s.RequestedUnits = &typ, &units })
}

func asksFor(typ string) func(*lessor.LeaseRequest) {
	return func(r *lessor.LeaseRequest) { r.Types, r.TTLMS = []string{typ}, new(time.Hour.Milliseconds()) }
}

func TestNoUnitsAreKeptForAJobThatNoWorkerAsksFor(t *testing.T) {
	cfg := config()
	cfg.TotalUnits, cfg.ReserveUnits = 20, 0
	inWorld(t, cfg, func(t *testing.T, w *world) {
		w.submitUnits("small", 10)
		w.lease("worker-1", asksFor("small"))
		w.submitUnits("large", 20)
		w.submitUnits("small", 1)
		if _, d := w.ask("worker-2", asksFor("large")); d == nil || d.Code != lessor.NextJobTooLarge {
			t.Fatalf("the large job: %+v, want %s", d, lessor.NextJobTooLarge)
		}
		time.Sleep(time.Minute)
		if _, d := w.ask("worker-1", asksFor("small")); d == nil || d.Code != lessor.NextJobTooLarge {
			t.Fatalf("while worker-2 is known: %+v, want %s: free units are kept", d, lessor.NextJobTooLarge)
		}
		time.Sleep(5 * time.Minute)
		w.lease("worker-1", asksFor("small"))
	})
}

// TestNoUnitsAreKeptForAJobThatIsTooLargeForItsWorkers: the only worker that takes jobs of its size has gone, and
// others ask for its type.
func TestNoUnitsAreKeptForAJobThatIsTooLargeForItsWorkers(t *testing.T) {
	cfg := config()
	cfg.TotalUnits, cfg.ReserveUnits = 20, 0
	inWorld(t, cfg, func(t *testing.T, w *world) {
		small := func(r *lessor.LeaseRequest) {
			asksFor("generic")(r)
			r.MaxUnits = new(int64(10))
		}
		w.submitUnits("first", 15)
		first := w.lease("holder", asksFor("first"))
		w.submitUnits("generic", 18)
		if _, d := w.ask("large", asksFor("generic")); d == nil || d.Code != lessor.NextJobTooLarge {
			t.Fatalf("the large job: %+v, want %s", d, lessor.NextJobTooLarge)
		}
		w.submitUnits("generic", 5)
		time.Sleep(time.Minute)
		w.mustComplete(first, "completed")
		for range 4 {
			if _, d := w.ask("small", small); d == nil || d.Code != lessor.NextJobTooLarge {
				t.Fatalf("while large is known: %+v, want %s: free units are kept", d, lessor.NextJobTooLarge)
			}
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Second)
		w.lease("small", small)
	})
}

func TestUnitsBeyondThoseThatAreKeptAreGranted(t *testing.T) {
	cfg := config()
	cfg.TotalUnits, cfg.ReserveUnits = 20, 0
	inWorld(t, cfg, func(t *testing.T, w *world) {
		w.submitUnits("first", 15)
		held := w.lease("worker-1", asksFor("first"))
		w.submitUnits("large", 10)
		w.submitUnits("small", 1)
		if _, d := w.ask("worker-2", asksFor("large")); d == nil || d.Code != lessor.NextJobTooLarge {
			t.Fatalf("the large job: %+v, want %s", d, lessor.NextJobTooLarge)
		}
		time.Sleep(time.Minute)
		if _, d := w.ask("worker-1", asksFor("small")); d == nil || d.Code != lessor.NextJobTooLarge {
			t.Fatalf("5 are free, 10 are kept: %+v, want %s", d, lessor.NextJobTooLarge)
		}
		w.mustComplete(held, "completed")
		w.lease("worker-1", asksFor("small")) // 20 are free
		w.lease("worker-2", asksFor("large"))
	})
}

func TestUniqueIsSkippedForABusyWorkerOnly(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		unique := w.submit(func(s *lessor.Submission) { s.Unique = new(true) })
		plain := w.submit(func(s *lessor.Submission) { s.Priority = new("high") })
		if g := w.lease("worker-1", nil); g.Job.ID != plain.ID {
			t.Fatal("the high priority job was not first")
		}
		other := w.submit(nil)
		if g := w.lease("worker-1", nil); g.Job.ID != other.ID {
			t.Errorf("a busy worker got %v, want the job behind the unique one", g.Job.ID)
		}
		if g := w.lease("worker-2", nil); g.Job.ID != unique.ID {
			t.Errorf("an idle worker got %v, want the unique job", g.Job.ID)
		}
	})
}

// TestTwoRequestsOfAWorkerGetOneUniqueJob: both are served in one commit. (Seed 88 of the simulator found that each of
// them got one.)
func TestTwoRequestsOfAWorkerGetOneUniqueJob(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		granted := make(chan bool, 2)
		for range 2 {
			go func() {
				g, _ := w.ask("worker-1", waiting(5000))
				granted <- g != nil
			}()
		}
		synctest.Wait()
		unique := lessor.Submission{Type: new("report"), Unique: new(true)}
		if _, err := w.SubmitBatch(w.ctx, anybody, []lessor.Submission{unique, unique}); err != nil {
			t.Fatal(err)
		}
		if one, other := <-granted, <-granted; one == other {
			t.Error("both requests of a worker got a unique job, or none did")
		}
		w.lease("worker-2", nil)
	})
}

func TestMaxUnitsFilters(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(func(s *lessor.Submission) { s.RequestedUnits = new(int64(9)) })
		small := w.submit(func(s *lessor.Submission) { s.RequestedUnits = new(int64(8)) })
		g := w.lease("worker-1", func(r *lessor.LeaseRequest) { r.MaxUnits = new(int64(8)) })
		if g.Job.ID != small.ID || g.Lease.CapacityUnits != 8 {
			t.Errorf("granted %v with %d units, want the job of 8", g.Job.ID, g.Lease.CapacityUnits)
		}
	})
}

func TestMaxLeasesBoundsCountAndSumOfUnits(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		for range 5 {
			w.submit(func(s *lessor.Submission) { s.RequestedUnits = new(int64(3)) })
		}
		grants, _ := w.askMany("worker-1", func(r *lessor.LeaseRequest) {
			r.MaxLeases, r.MaxUnits = new(int64(4)), new(int64(7))
		})
		if len(grants) != 2 {
			t.Errorf("%d grants of 3 units within 7, want 2", len(grants))
		}
		grants, _ = w.askMany("worker-1", func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(2)) })
		if len(grants) != 2 {
			t.Errorf("%d grants, want max_leases = 2", len(grants))
		}
	})
}

func TestRepeatedRequestReturnsTheSameGrant(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		w.submit(nil)
		ask := func(r *lessor.LeaseRequest) { r.RequestID = new("r-1") }
		first := w.lease("worker-1", ask)
		again := w.lease("worker-1", ask)
		if first.Lease.ID != again.Lease.ID {
			t.Errorf("the same request got lease %v and then %v", first.Lease.ID, again.Lease.ID)
		}
		other := w.lease("worker-2", ask)
		if other.Lease.ID == first.Lease.ID {
			t.Error("another worker got the first worker's lease")
		}
		w.mustComplete(first, "completed")
		if _, d := w.ask("worker-1", ask); d == nil {
			t.Error("a request whose lease is over got a lease without a queued job")
		}
		w.noDrift()
	})
}

func TestSameCallOnAnEndedLeaseIsAnsweredTheSame(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		g := w.lease("worker-1", nil)
		w.mustComplete(g, "completed")
		w.mustComplete(g, "completed")
		w.wantCode(w.complete(g, "failed"), lessor.CodeLeaseNotFound)
		g.Lease.WorkerID = "worker-2"
		w.wantCode(w.complete(g, "completed"), lessor.CodeLeaseNotFound)
		w.wantState(job.ID, lessor.Completed)
		w.restart(time.Second)
		g.Lease.WorkerID = "worker-1"
		w.mustComplete(g, "completed")
	})
}

func TestOverLeaseChangesNothing(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		g := w.lease("worker-1", nil)
		w.mustBeat(g)
		time.Sleep(time.Minute) // expires exactly now, whether or not a sweep has run
		if _, err := w.beat(g); lessor.CodeOf(err) != lessor.CodeLeaseNotFound {
			t.Errorf("heartbeat at expires_at: %v, want lease_not_found", err)
		}
		for _, status := range []string{"completed", "failed"} {
			w.wantCode(w.complete(g, status), lessor.CodeLeaseNotFound)
		}
		err := w.Release(w.ctx, anybody, g.Lease.ID, lessor.Release{WorkerID: &g.Lease.WorkerID})
		w.wantCode(err, lessor.CodeLeaseNotFound)
		w.wantCode(w.Revoke(w.ctx, anybody, g.Lease.ID, ""), lessor.CodeLeaseNotFound)
		time.Sleep(time.Second / 2)
		w.wantState(job.ID, lessor.Expired)
	})
}
