package scheduler_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// cancelled waits at most 10 s for leases that a worker must stop.
func (w *world) cancelled(c scheduler.Caller, worker string) lessor.StoppedLeases {
	w.t.Helper()
	found, err := w.Cancelled(w.ctx, c, lessor.CancelWait{WorkerID: &worker, WaitMS: new(int64(10_000))})
	if err != nil {
		w.t.Fatalf("wait for cancelled leases: %v", err)
	}
	return found
}

func (w *world) cancel(id lessor.JobID) {
	w.t.Helper()
	if _, err := w.Cancel(w.ctx, anybody, id, false); err != nil {
		w.t.Fatalf("cancel: %v", err)
	}
}

// wantCancelled fails unless the leases of the grants are cancelled, and none is over.
func (w *world) wantCancelled(found lessor.StoppedLeases, grants ...lessor.Grant) {
	w.t.Helper()
	if found.EndedIDs == nil || len(found.EndedIDs) > 0 {
		w.t.Errorf("ended leases %v, want an empty list", found.EndedIDs)
	}
	w.wantLeases(found.LeaseIDs, grants...)
}

// wantEnded fails unless the leases of the grants are over, and none is cancelled.
func (w *world) wantEnded(found lessor.StoppedLeases, grants ...lessor.Grant) {
	w.t.Helper()
	if found.LeaseIDs == nil || len(found.LeaseIDs) > 0 {
		w.t.Errorf("cancelled leases %v, want an empty list", found.LeaseIDs)
	}
	w.wantLeases(found.EndedIDs, grants...)
}

func (w *world) wantLeases(ids []lessor.LeaseID, grants ...lessor.Grant) {
	w.t.Helper()
	want := []lessor.LeaseID{}
	for _, g := range grants {
		want = append(want, g.Lease.ID)
	}
	byID := func(a, b lessor.LeaseID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) }
	slices.SortFunc(ids, byID)
	slices.SortFunc(want, byID)
	if !slices.Equal(ids, want) {
		w.t.Errorf("the worker is woken for leases %v, want %v", ids, want)
	}
}

func TestCancelReachesAWorkerThatWaits(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		w.submit(nil)
		first, second := w.lease("worker-1", nil), w.lease("worker-1", nil)
		start := time.Now()
		time.AfterFunc(3*time.Second, func() { w.cancel(first.Job.ID) })
		w.wantCancelled(w.cancelled(anybody, "worker-1"), first)
		if took := time.Since(start); took > 3*time.Second+10*time.Millisecond {
			t.Errorf("woken after %v, want within milliseconds of the cancel at 3 s", took)
		}
		w.cancel(first.Job.ID) // again: nothing new
		w.cancel(second.Job.ID)
		synctest.Wait()
		w.wantCancelled(w.cancelled(anybody, "worker-2"))
		w.wantCancelled(w.cancelled(anybody, "worker-1"), second) // between two calls
		w.wantCancelled(w.cancelled(anybody, "worker-1"))         // once
		w.restart(time.Second)
		w.wantCancelled(w.cancelled(anybody, "worker-1"), first, second) // in case the answer was lost
		time.Sleep(2 * time.Minute)
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		ask := lessor.CancelWait{WorkerID: new("worker-1"), WaitMS: new(int64(10_000))}
		if _, err := w.Cancelled(ctx, anybody, ask); err == nil {
			t.Error("a call whose caller has left was answered")
		}
		_, err := w.Cancelled(w.ctx, anybody, lessor.CancelWait{WorkerID: new("worker-1"), WaitMS: new(int64(30_001))})
		w.wantCode(err, lessor.CodeInvalidValue)
	})
}

// TestEndByOthersReachesAWorkerThatWaits also checks that two events wake no worker: that it ended a lease itself, and
// that a lease has lapsed.
func TestEndByOthersReachesAWorkerThatWaits(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		for range 5 {
			w.submit(nil)
		}
		forced, revoked := w.lease("worker-1", nil), w.lease("worker-1", nil)
		dead, ended, lapsed := w.lease("worker-1", nil), w.lease("worker-1", nil), w.lease("worker-1", nil)
		time.AfterFunc(3*time.Second, func() { w.endByForce(forced) })
		start := time.Now()
		w.wantEnded(w.cancelled(anybody, "worker-1"), forced)
		if took := time.Since(start); took > 3*time.Second+10*time.Millisecond {
			t.Errorf("woken after %v, want within milliseconds of the end at 3 s", took)
		}
		if err := w.Revoke(w.ctx, anybody, revoked.Lease.ID, "moved"); err != nil {
			t.Fatal(err)
		}
		if err := w.EndDead(w.ctx, anybody, dead.Lease.ID, rules.DeathHeartbeatStopped); err != nil {
			t.Fatal(err)
		}
		err := w.Release(w.ctx, anybody, ended.Lease.ID, lessor.Release{WorkerID: new("worker-1")})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		w.wantEnded(w.cancelled(anybody, "worker-1"), revoked, dead)
		time.Sleep(time.Minute)
		w.wantState(lapsed.Job.ID, lessor.Queued)
		w.wantEnded(w.cancelled(anybody, "worker-1"))
	})
}

func (w *world) endByForce(g lessor.Grant) {
	w.t.Helper()
	if _, err := w.Cancel(w.ctx, anybody, g.Job.ID, true); err != nil {
		w.t.Errorf("cancel by force: %v", err)
	}
}

// TestCancelReachesOnlyTheTokenThatTookTheLease: the id of a lease is a secret, which no other token may see.
func TestCancelReachesOnlyTheTokenThatTookTheLease(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		taker := workerOf(nil, 1)
		w.submit(nil)
		grants := w.askAs(taker, "worker-1", nil)
		w.cancel(grants[0].Job.ID)
		for _, c := range []scheduler.Caller{workerOf(nil, 2), workerOf(tenantOf(1), 1)} {
			w.wantCancelled(w.cancelled(c, "worker-1"))
		}
		w.wantCancelled(w.cancelled(taker, "worker-1"), grants[0])
	})
}

// TestCancelOnAnotherNodeReachesAWorkerThatWaits also has a node that believes it is alone, whose changes the other
// reads from the tables.
func TestCancelOnAnotherNodeReachesAWorkerThatWaits(t *testing.T) {
	for name, act := range map[string]func(*scheduler.Scheduler){
		"one of several": (*scheduler.Scheduler).ActAsOneOfSeveral, "sole": (*scheduler.Scheduler).ActAsSoleNode,
	} {
		t.Run(name, func(t *testing.T) {
			url := pool.Database(t)
			a, b := node(t, url, config(), nil, act), node(t, url, config(), nil)
			for range 2 {
				a.submit(nil)
			}
			g, forced := b.lease("worker-1", waiting(5000)), b.lease("worker-1", waiting(5000))
			b.wantReached(func() { a.cancel(g.Job.ID) }, b.wantCancelled, g)
			b.wantReached(func() {
				if err := a.send(g.Job.ID, 1); err != nil {
					t.Error(err)
				}
			}, b.wantMessaged, g)
			b.wantReached(func() { a.endByForce(forced) }, b.wantEnded, forced)
			a.noDrift()
			b.noDrift()
		})
	}
}

// wantMessaged fails unless the jobs of the grants have a message, and none must stop.
func (w *world) wantMessaged(found lessor.StoppedLeases, grants ...lessor.Grant) {
	w.t.Helper()
	if len(found.LeaseIDs) > 0 || len(found.EndedIDs) > 0 {
		w.t.Errorf("stopped %v and ended %v, want only a message", found.LeaseIDs, found.EndedIDs)
	}
	w.wantLeases(found.MessagedIDs, grants...)
}

// TestMessageReachesAWorkerThatWaits also covers a job with many messages, which wakes its worker once; a worker that
// waits for only one of its leases; and a job that has no worker.
func TestMessageReachesAWorkerThatWaits(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		w.submit(nil)
		first, second := w.lease("worker-1", nil), w.lease("worker-1", nil)
		idle := w.submit(nil)
		send := func(id lessor.JobID, n int64) {
			t.Helper()
			if err := w.send(id, n); err != nil {
				t.Fatal(err)
			}
		}
		time.AfterFunc(3*time.Second, func() { send(first.Job.ID, 1) })
		w.wantMessaged(w.cancelled(anybody, "worker-1"), first)
		send(idle.ID, 1)
		for n := range int64(5) {
			send(first.Job.ID, n+2)
		}
		send(second.Job.ID, 1)
		synctest.Wait() // the call below does not wait
		one := lessor.CancelWait{WorkerID: new("worker-1"), LeaseID: new(second.Lease.ID.String())}
		found, err := w.Cancelled(w.ctx, anybody, one)
		if err != nil {
			t.Fatal(err)
		}
		w.wantMessaged(found, second)
		w.wantMessaged(w.cancelled(anybody, "worker-1"), first)
		w.wantMessaged(w.cancelled(anybody, "worker-1"))
		w.restart(time.Second)
		w.wantMessaged(w.cancelled(anybody, "worker-1"), first, second) // they were not seen
	})
}

// wantReached fails unless worker-1, which waits on w, is woken within 2 s by what act does elsewhere.
func (w *world) wantReached(act func(), want func(lessor.StoppedLeases, ...lessor.Grant), g lessor.Grant) {
	w.t.Helper()
	woken := make(chan time.Time, 1)
	go func() {
		want(w.cancelled(anybody, "worker-1"), g)
		woken <- time.Now()
	}()
	time.Sleep(300 * time.Millisecond) // time for the call to wait; one that comes later only returns sooner
	start := time.Now()
	act()
	if took := (<-woken).Sub(start); took > 2*time.Second {
		w.t.Errorf("woken after %v, want within 2 s", took)
	}
}

// TestWorkerIsNotToldOfAnEndThatDidNotCommit revokes a lease, and the commit fails. The worker that waits must not hear
// that its lease is over, because it lives.
func TestWorkerIsNotToldOfAnEndThatDidNotCommit(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		told := make(chan lessor.StoppedLeases)
		go func() { told <- w.cancelled(anybody, "worker-1") }()
		synctest.Wait()
		full := fmt.Errorf("disk: %w", scheduler.ErrFull)
		f.commit.Store(&full)
		w.wantCode(w.Revoke(w.ctx, anybody, g.Lease.ID, "test"), lessor.CodeUnavailable)
		f.commit.Store(nil)
		w.wantEnded(<-told)
		w.mustBeat(g)
		go func() { told <- w.cancelled(anybody, "worker-1") }()
		synctest.Wait()
		if err := w.Revoke(w.ctx, anybody, g.Lease.ID, "test"); err != nil {
			t.Error(err)
		}
		w.wantEnded(<-told, g)
	})
}
