package scheduler_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// cancelled waits for cancelled leases of a worker, at most 10 s.
func (w *world) cancelled(c scheduler.Caller, worker string) []lessor.LeaseID {
	w.t.Helper()
	ids, err := w.Cancelled(w.ctx, c, &worker, new(int64(10_000)))
	if err != nil {
		w.t.Fatalf("wait for cancelled leases: %v", err)
	}
	return ids
}

func (w *world) cancel(id lessor.JobID) {
	w.t.Helper()
	if _, err := w.Cancel(w.ctx, anybody, id, false); err != nil {
		w.t.Fatalf("cancel: %v", err)
	}
}

// wantCancelled fails unless ids are the leases of the grants.
func (w *world) wantCancelled(ids []lessor.LeaseID, grants ...lessor.Grant) {
	w.t.Helper()
	want := []lessor.LeaseID{}
	for _, g := range grants {
		want = append(want, g.Lease.ID)
	}
	byID := func(a, b lessor.LeaseID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) }
	slices.SortFunc(ids, byID)
	slices.SortFunc(want, byID)
	if !slices.Equal(ids, want) {
		w.t.Errorf("cancelled leases %v, want %v", ids, want)
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
			t.Errorf("told after %v, want within milliseconds of the cancel at 3 s", took)
		}
		w.cancel(first.Job.ID) // again: nothing new
		w.cancel(second.Job.ID)
		synctest.Wait()
		w.wantCancelled(w.cancelled(anybody, "worker-2"))
		w.wantCancelled(w.cancelled(anybody, "worker-1"), second) // between two calls
		w.wantCancelled(w.cancelled(anybody, "worker-1"))         // once
		w.restart(time.Second)
		w.wantCancelled(w.cancelled(anybody, "worker-1"), first, second) // the answer may have been lost with the server
		time.Sleep(2 * time.Minute)
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := w.Cancelled(ctx, anybody, new("worker-1"), new(int64(10_000))); err == nil {
			t.Error("a call whose caller has left was answered")
		}
		_, err := w.Cancelled(w.ctx, anybody, new("worker-1"), new(int64(30_001)))
		w.wantCode(err, lessor.CodeInvalidValue)
	})
}

// TestCancelIsToldToTheTokenThatTookTheLease: the id of a lease is its key.
func TestCancelIsToldToTheTokenThatTookTheLease(t *testing.T) {
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
			a.submit(nil)
			g := b.lease("worker-1", waiting(5000))
			told := make(chan time.Time, 1)
			go func() {
				b.wantCancelled(b.cancelled(anybody, "worker-1"), g)
				told <- time.Now()
			}()
			time.Sleep(300 * time.Millisecond) // the call waits; if not yet, it only ends sooner
			start := time.Now()
			a.cancel(g.Job.ID)
			if took := (<-told).Sub(start); took > 2*time.Second {
				t.Errorf("told after %v, want within 2 s", took)
			} else {
				t.Logf("told after %v", took)
			}
			a.noDrift()
			b.noDrift()
		})
	}
}
