package scheduler_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
)

// beforeTheSweep lets a minute pass from now on. A lease that is checked just before its end delays the next sweep by a
// quarter of a second: leases that lapse after a minute are not ended yet.
func beforeTheSweep(w *world) {
	w.t.Helper()
	w.submit(nil)
	g := w.lease("worker-that-beats", func(r *lessor.LeaseRequest) { r.TTLMS = new(int64(59_900)) })
	time.Sleep(30 * time.Second)
	w.mustBeat(g)
	time.Sleep(30*time.Second + 50*time.Millisecond)
}

// A call that arrives while the brake is due is answered when the brake is decided, and its lease lives.
func TestLateCallIsAnsweredByTheBrake(t *testing.T) {
	calls := map[string]func(w *world, g lessor.Grant) error{
		"heartbeat": func(w *world, g lessor.Grant) error { _, err := w.beat(g); return err },
		"batch": func(w *world, g lessor.Grant) error {
			as, err := w.HeartbeatAll(w.ctx, anybody, g.Lease.WorkerID, []string{g.Lease.ID.String()})
			if err == nil {
				err = as[0].Err
			}
			return err
		},
		"complete": func(w *world, g lessor.Grant) error { return w.complete(g, "completed") },
		"fail":     func(w *world, g lessor.Grant) error { return w.complete(g, "failed") },
		"release": func(w *world, g lessor.Grant) error {
			return w.Release(w.ctx, anybody, g.Lease.ID, lessor.Release{WorkerID: &g.Lease.WorkerID})
		},
		"revoke": func(w *world, g lessor.Grant) error { return w.Revoke(w.ctx, anybody, g.Lease.ID, "") },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			inWorld(t, config(), func(t *testing.T, w *world) {
				grants := hold(w, 4, 5)
				beforeTheSweep(w)
				for i, g := range grants[:5] {
					if err := call(w, g); err != nil {
						t.Errorf("call %d on a lease that the brake spares: %v", i, err)
					}
				}
				for _, g := range grants[5:] {
					w.mustBeat(g)
				}
				w.noDrift()
			})
		})
	}
}

// The commit that answers that a lease is over also ends it: neither the brake nor a restart brings it back.
func TestLeaseAnsweredAsOverStaysOver(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		g := w.lease("worker-0", nil)
		beforeTheSweep(w)
		if _, err := w.beat(g); lessor.CodeOf(err) != lessor.CodeLeaseNotFound {
			t.Fatalf("heartbeat after expires_at: %v, want lease_not_found", err)
		}
		w.wantState(job.ID, lessor.Expired)
		w.restart(2 * time.Second) // moves the floor
		if _, err := w.beat(g); lessor.CodeOf(err) != lessor.CodeLeaseNotFound {
			t.Errorf("heartbeat after a restart: %v, want lease_not_found as before", err)
		}
		w.noDrift()
	})
}

// The brake also spares a lease whose maximum runtime is over: the floor holds for it too.
func TestBrakeSparesUsedUpRunningTime(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(func(s *lessor.Submission) { s.MaxRuntimeS = new(int64(60)) })
		w.lease("worker-0", nil)
		hold(w, 4, 5)
		time.Sleep(time.Minute + time.Second)
		w.wantState(job.ID, lessor.Leased)
	})
}

// After the brake the leases that late calls name are ended at once, others at the brake's rate.
func TestLateCallsAfterTheBrakeEndTheirLeases(t *testing.T) {
	cfg := config()
	cfg.TotalUnits, cfg.Brake.Rate = 1000, 4
	inWorld(t, cfg, func(t *testing.T, w *world) {
		grants := hold(w, 10, 10)
		time.Sleep(2*time.Minute + time.Second) // the brake's floor has ended, and with it every lease
		over := 0
		for _, g := range grants[:60] {
			if _, err := w.beat(g); lessor.CodeOf(err) == lessor.CodeLeaseNotFound {
				over++
			}
			if j := w.job(g.Job.ID); j.LeaseID != nil {
				t.Fatalf("a job whose heartbeat was refused is %s and has a lease, want none", j.State)
			}
		}
		if live := w.live(); over != 60 || live < 20 || live > 40 {
			t.Errorf("%d of 60 heartbeats were refused and %d of 40 silent leases live, "+
				"want all, and most to wait for the rate",
				over, live)
		}
		w.noDrift()
	})
}

// After the brake the leases that late calls end count against its rate: a commit that ends so many of them ends no
// silent ones.
func TestLateCallsAfterTheBrakeCountAgainstItsRate(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		w.halt()
		w.cfg.TotalUnits, w.cfg.Brake.Rate = 1000, 10
		var slow atomic.Bool
		f.after = func() {
			if slow.CompareAndSwap(true, false) {
				time.Sleep(900 * time.Millisecond) // when it ends, the next sweep is due
			}
		}
		w.start()
		late := hold(w, 10, 12)[108:] // all of worker-9
		time.Sleep(2 * time.Minute)
		for w.live() == 120 { // the brake's floor has not ended
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)
		before := w.live()
		slow.Store(true)
		go func() {
			if _, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		ids := make([]string, len(late))
		for i, g := range late {
			ids[i] = g.Lease.ID.String()
		}
		answers, err := w.HeartbeatAll(w.ctx, anybody, "worker-9", ids)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			w.wantCode(a.Err, lessor.CodeLeaseNotFound)
		}
		if ended := before - w.live(); ended != len(late) {
			t.Errorf("%d leases ended with %d late calls, want no others: the rate is 10", ended, len(late))
		}
		w.noDrift()
	})
}

// Late calls that follow each other share one count of all leases, of which there may be a million.
func TestLateCallsShareACount(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		grants := hold(w, 1, 9)
		beforeTheSweep(w)
		f.counts.Store(0)
		for _, g := range grants {
			_, err := w.beat(g)
			w.wantCode(err, lessor.CodeLeaseNotFound)
		}
		if n := f.counts.Load(); n != 1 {
			t.Errorf("all leases were counted %d times for 9 late calls at once, want once", n)
		}
	})
}

// A repeated request whose lease has lapsed gets nothing new until it is decided whether the lease is over.
func TestRepeatedRequestWaitsForTheBrake(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		repeat := func(r *lessor.LeaseRequest) { r.RequestID = new("r1") }
		first := w.lease("worker-0", repeat)
		hold(w, 4, 5)
		w.submit(nil)
		beforeTheSweep(w)
		var again *lessor.Grant
		for i := 0; again == nil && i < 10; i++ {
			again, _ = w.ask("worker-0", repeat)
			time.Sleep(100 * time.Millisecond)
		}
		if again == nil || again.Lease.ID != first.Lease.ID {
			t.Errorf("the repeated request got %v, want its lease %v that the brake spared", again, first.Lease.ID)
		}
		w.noDrift()
	})
}

// Two nodes answer late calls on leases that the brake may spare: what one of them answered as over stays over on both.
func TestNodesAgreeAboutLateCalls(t *testing.T) {
	cfg := config()
	cfg.TTL = 5 * time.Second // longer than the last check takes
	ws := nodes(t, 2, cfg, nil)
	grants := hold(ws[0], 4, 10)
	decided := grants[len(grants)-1].Lease.ExpiresAt.Add(time.Second)
	time.Sleep(time.Until(grants[0].Lease.ExpiresAt.Time()))
	over := make([]bool, len(grants))
	var all sync.WaitGroup
	for i, g := range grants {
		all.Go(func() {
			for over[i] = false; !over[i] && now() < decided; {
				_, err := ws[i%2].beat(g)
				over[i] = lessor.CodeOf(err) == lessor.CodeLeaseNotFound
			}
		})
	}
	all.Wait()
	for i, g := range grants {
		if _, err := ws[1-i%2].beat(g); (lessor.CodeOf(err) == lessor.CodeLeaseNotFound) != over[i] {
			t.Errorf("lease %d was answered as over: %v; the other node then answers %v", i, over[i], err)
		}
	}
}
