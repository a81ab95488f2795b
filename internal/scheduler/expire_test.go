package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"lessor"
)

func TestSilentWorkerLosesItsLeaseToAnother(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		g := w.lease("worker-1", nil)
		w.mustBeat(g)
		time.Sleep(time.Minute - time.Millisecond)
		w.wantState(job.ID, lessor.Running)
		time.Sleep(time.Second)
		j := w.wantState(job.ID, lessor.Expired)
		if j.RetryAt.IsZero() || j.LeaseID != nil {
			t.Errorf("expired job has retry_at %v and lease %v; want a retry and no lease", j.RetryAt, j.LeaseID)
		}
		time.Sleep(2 * time.Second)
		w.wantState(job.ID, lessor.Queued)
		next := w.lease("worker-2", nil)
		if next.Job.ID != job.ID || next.Job.Attempt != 2 || next.Lease.Fence <= g.Lease.Fence {
			t.Errorf("next attempt is %d with fence %d after %d; want 2 and a larger fence", next.Job.Attempt,
				next.Lease.Fence, g.Lease.Fence)
		}
		w.noDrift()
	})
}

func TestRetriedJobKeepsItsPlace(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		first, second := w.submit(nil), w.submit(nil)
		w.mustComplete(w.lease("worker-1", nil), "failed")
		time.Sleep(time.Second)
		if g := w.lease("worker-1", nil); g.Job.ID != first.ID {
			t.Errorf("granted %v, want the retried job before %v", g.Job.ID, second.ID)
		}
	})
}

func TestAttemptsAreBounded(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(func(s *lessor.Submission) { s.MaxAttempts = new(int64(3)) })
		for n := 1; n <= 3; n++ {
			g := w.lease("worker-1", func(r *lessor.LeaseRequest) { r.WaitMS = new(int64(10_000)) })
			if g.Job.Attempt != n {
				t.Fatalf("attempt %d, want %d", g.Job.Attempt, n)
			}
			w.mustComplete(g, "failed")
		}
		if j := w.wantState(job.ID, lessor.Failed); !j.RetryAt.IsZero() {
			t.Errorf("retry_at is %v after the last attempt, want null", j.RetryAt)
		}
		time.Sleep(time.Hour)
		if _, d := w.ask("worker-1", nil); d == nil {
			t.Error("a job without attempts left was granted")
		}
	})
}

// TestJobThatKillsItsWorkersEnds: an attempt whose worker died counts like one that failed.
func TestJobThatKillsItsWorkersEnds(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(func(s *lessor.Submission) { s.MaxAttempts = new(int64(3)) })
		for n := 1; n <= 3; n++ {
			if g := w.lease("worker-1", nil); g.Job.Attempt != n {
				t.Fatalf("attempt %d, want %d", g.Job.Attempt, n)
			}
			time.Sleep(5 * time.Minute) // the worker is dead
		}
		if j := w.wantState(job.ID, lessor.Expired); !j.RetryAt.IsZero() {
			t.Errorf("retry_at is %v after the last attempt, want null", j.RetryAt)
		}
	})
}

func TestShorterTTLDoesNotPutOffTheEndOfTheRunningTime(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(func(s *lessor.Submission) { s.MaxRuntimeS, s.MaxAttempts = new(int64(5)), new(int64(1)) })
		g := w.lease("worker-1", nil) // for 60 s, and never ended before the floor and its ttl
		time.Sleep(8 * time.Second)
		b := lessor.Heartbeat{WorkerID: new("worker-1"), TTLMS: new(int64(10_000))}
		if _, err := w.Heartbeat(w.ctx, anybody, g.Lease.ID, b); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		w.wantState(job.ID, lessor.Failed)
	})
}

func TestMaxRuntimeEndsTheAttemptWhateverBeats(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(func(s *lessor.Submission) { s.MaxRuntimeS, s.MaxAttempts = new(int64(90)), new(int64(1)) })
		g := w.lease("worker-1", nil)
		for range 4 {
			w.mustBeat(g)
			time.Sleep(20 * time.Second)
		}
		w.mustBeat(g)
		time.Sleep(10 * time.Second)
		_, err := w.beat(g)
		w.wantCode(err, lessor.CodeLeaseNotFound)
		time.Sleep(time.Second)
		if j := w.wantState(job.ID, lessor.Failed); j.Error == nil || *j.Error != "max_runtime_exceeded" {
			t.Errorf("error is %v, want max_runtime_exceeded", j.Error)
		}
	})
}

func TestDowntimeIsNotChargedToWorkers(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		g := w.lease("worker-1", nil)
		w.mustBeat(g)
		w.restart(3 * time.Minute)
		w.wantState(job.ID, lessor.Running)
		time.Sleep(59 * time.Second)
		w.mustBeat(g)
		time.Sleep(time.Minute + time.Second/2)
		w.wantState(job.ID, lessor.Expired)
	})
}

func TestWorkerThatDoesNotComeBackExpiresAfterTheFloor(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		w.lease("worker-1", nil)
		w.restart(3 * time.Minute)
		time.Sleep(time.Minute - time.Millisecond)
		w.wantState(job.ID, lessor.Leased)
		time.Sleep(time.Second)
		w.wantState(job.ID, lessor.Expired)
	})
}

// hold gives workers n leases each, with one heartbeat. All leases end at about the same time.
func hold(w *world, workers, n int) []lessor.Grant {
	w.t.Helper()
	var grants []lessor.Grant
	for i := range workers {
		for range n {
			w.submit(nil)
			grants = append(grants, w.lease(fmt.Sprintf("worker-%d", i), nil))
		}
	}
	return grants
}

func TestBrakeSparesManySilentWorkers(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		grants := hold(w, 4, 5)
		time.Sleep(time.Minute + time.Second)
		for _, g := range grants {
			w.wantState(g.Job.ID, lessor.Leased)
		}
		st, err := w.Status(w.ctx, anybody)
		if err != nil || st.BrakeUntil.IsZero() {
			t.Fatalf("brake_until is %v (%v), want an instant: the brake is on", st.BrakeUntil, err)
		}
		time.Sleep(30 * time.Second)
		w.mustBeat(grants[0])
		time.Sleep(29*time.Second + time.Second/2)
		w.wantState(grants[0].Job.ID, lessor.Running)
		w.wantState(grants[1].Job.ID, lessor.Expired) // no second brake
		pulled := 0
		for _, s := range w.stats {
			if s.MassExpiry {
				pulled++
			}
		}
		if pulled != 1 {
			t.Errorf("mass expiry was raised %d times, want once", pulled)
		}
		w.noDrift()
	})
}

func TestTwoDeadWorkersAreNoMassExpiry(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		grants := hold(w, 2, 10)
		time.Sleep(time.Minute + time.Second/2)
		for _, g := range grants {
			w.wantState(g.Job.ID, lessor.Expired)
		}
	})
}

func TestAfterTheBrakeLeasesEndAtItsRate(t *testing.T) {
	cfg := config()
	cfg.TotalUnits, cfg.Brake.Rate = 1000, 20
	inWorld(t, cfg, func(t *testing.T, w *world) {
		hold(w, 10, 20)
		time.Sleep(2*time.Minute + time.Second/2) // the brake's floor has just ended
		for range 5 {
			before := w.live()
			time.Sleep(time.Second)
			if ended := before - w.live(); ended > 20+5 || ended == 0 {
				t.Errorf("%d leases ended in a second, want at most about 20", ended)
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, s := range w.stats {
			if n := len(s.Ended); n > 20 {
				t.Errorf("%d leases ended in one commit, want at most 20: no more than a second counts", n)
			}
		}
	})
}

func (w *world) live() int {
	w.t.Helper()
	st, err := w.Status(w.ctx, anybody)
	if err != nil {
		w.t.Fatal(err)
	}
	return st.ActiveLeases
}

// TestLeaseEndsOnceInASweep repeats the request of a lease that is over, before the sweep: the lease is then
// checked for two reasons.
func TestLeaseEndsOnceInASweep(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		w.lease("worker-1", nil)
		time.Sleep(100 * time.Millisecond)
		w.submit(func(s *lessor.Submission) { s.MaxRuntimeS = new(int64(60)) })
		repeatable := func(r *lessor.LeaseRequest) { r.RequestID = new("r1") }
		g := w.lease("worker-2", repeatable)
		time.Sleep(time.Minute + 50*time.Millisecond) // the sweep that ended the first is over
		if _, denial := w.ask("worker-2", repeatable); denial == nil {
			t.Fatal("the request of a lease that is over is answered with a grant")
		}
		time.Sleep(500 * time.Millisecond)
		w.wantState(g.Job.ID, lessor.Failed)
		ended := 0
		for _, s := range w.stats {
			ended += len(s.Ended)
			if s.Err != nil {
				t.Errorf("a commit failed: %v", s.Err)
			}
		}
		if ended != 2 {
			t.Errorf("two leases ended %d times", ended)
		}
		w.noDrift()
	})
}

// TestManyLeasesEndInTime: thousands of leases lapse at once, after thousands of jobs were completed whose leases would
// have lapsed before.
func TestManyLeasesEndInTime(t *testing.T) {
	const silent, page = 24_000, 500
	cfg := config()
	cfg.TotalUnits = 2 * silent
	inWorld(t, cfg, func(t *testing.T, w *world) {
		w.lockKeys(10 * page)
		for range silent / page {
			subs := make([]lessor.Submission, page)
			for i := range subs {
				subs[i].Type = new("generic")
			}
			if _, err := w.SubmitBatch(w.ctx, anybody, subs); err != nil {
				t.Fatal(err)
			}
			w.askMany("worker-1", func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(page)) })
		}
		if s, err := w.Status(w.ctx, anybody); err != nil || s.ActiveLeases != silent {
			t.Fatalf("%d leases are active (%v), want %d", s.ActiveLeases, err, silent)
		}
		time.Sleep(62 * time.Second)
		if s, err := w.Status(w.ctx, anybody); err != nil || s.ActiveLeases != 0 {
			t.Errorf("%d leases are active two seconds after their end (%v), want none", s.ActiveLeases, err)
		}
		w.noDrift()
	})
}
