package scheduler_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

func bound(n byte) scheduler.Caller {
	return scheduler.Caller{Actor: "test", Tenant: &lessor.TenantID{UUID: lessor.UUID{15: n}}}
}

// poll asks for work in the background, for up to 30 s.
func (w *world) poll(c scheduler.Caller, worker string, edit func(*lessor.LeaseRequest)) *atomic.Pointer[lessor.Grant] {
	got := new(atomic.Pointer[lessor.Grant])
	r := lessor.LeaseRequest{WorkerID: &worker, WaitMS: new(int64(30_000))}
	if edit != nil {
		edit(&r)
	}
	go func() {
		if grants, _, err := w.Request(w.ctx, c, r); err == nil && len(grants) > 0 {
			got.Store(&grants[0])
		}
	}()
	return got
}

// retried returns how many requests that wait were tried again since it was last called.
func (w *world) retried() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.stats {
		n += s.Retried
	}
	w.stats = nil
	return n
}

func types(list ...string) func(*lessor.LeaseRequest) {
	return func(r *lessor.LeaseRequest) { r.Types = list }
}

func TestSubmissionWakesOnlyRequestsThatItMatches(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		const requests = 300
		for i := range requests {
			many := make([]string, 200)
			for j := range many {
				many[j] = fmt.Sprintf("type-%d-%d", i, j)
			}
			w.poll(bound(1), fmt.Sprintf("other-%d", i), types(many...))
		}
		w.poll(bound(1), "all-types", nil)
		w.poll(anybody, "another-type", types("type-x"))
		synctest.Wait()
		time.Sleep(time.Second)
		mine := w.poll(bound(2), "mine", types("mine"))
		synctest.Wait()
		w.retried()
		if _, err := w.Submit(w.ctx, bound(2), lessor.Submission{Type: new("mine")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if mine.Load() == nil {
			t.Error("the request that waits for the job did not get it")
		}
		if n := w.retried(); n != 1 {
			t.Errorf("%d requests were tried again, want the one that the job matches", n)
		}
		if err := w.Complete(w.ctx, bound(2), mine.Load().Lease.ID, lessor.Completion{
			WorkerID: new("mine"), Status: new("completed"),
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := w.retried(); n != 0 {
			t.Errorf("%d requests were tried again at the end of another's lease, want none: no one lacks capacity", n)
		}
	})
}

func TestWhatIsFreedWakesRequestsThatLackIt(t *testing.T) {
	small := config()
	small.TotalUnits, small.ReserveUnits, small.TenantCap = 2, 0, 1
	for _, c := range []struct {
		name  string
		first []func(*lessor.Submission) // granted before somebody waits
		next  func(*lessor.Submission)   // for whom somebody waits
		own   bool                       // the same worker waits
	}{
		{"capacity", []func(*lessor.Submission){units(2)}, nil, false},
		{"units for a larger job", []func(*lessor.Submission){units(1)}, units(2), false},
		{"a tenant's cap", []func(*lessor.Submission){ofTenant(1, "")}, ofTenant(1, ""), false},
		{"a lock key", []func(*lessor.Submission){ofTenant(0, "the-lock")}, ofTenant(0, "the-lock"), false},
		{
			"the worker of a unique job",
			[]func(*lessor.Submission){nil},
			func(s *lessor.Submission) { s.Unique = new(true) }, true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, small, func(t *testing.T, w *world) {
				var held []lessor.Grant
				for _, edit := range c.first {
					w.submit(edit)
					held = append(held, w.lease("holder", nil))
				}
				worker := "waiter"
				if c.own {
					worker = "holder"
				}
				got := w.poll(anybody, worker, nil)
				synctest.Wait()
				w.submit(c.next)
				time.Sleep(5 * time.Second)
				if got.Load() != nil {
					t.Fatal("the job was granted although it cannot be")
				}
				for _, g := range held {
					w.mustComplete(g, "completed")
				}
				time.Sleep(10 * time.Millisecond)
				if got.Load() == nil {
					t.Error("the request still waits although the job can be granted")
				}
			})
		})
	}
}

// TestCapacityThatComesBackWakesRequests: nobody calls when a temporary capacity expires.
func TestCapacityThatComesBackWakesRequests(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		none := lessor.CapacityAsk{Busy: lessor.SetTo(int64(10)), ExpiresInS: new(int64(10))}
		if _, err := w.SetCapacity(w.ctx, anybody, none); err != nil {
			t.Fatal(err)
		}
		got := w.poll(anybody, "waiter", nil)
		w.submit(nil)
		time.Sleep(9900 * time.Millisecond)
		if got.Load() != nil {
			t.Fatal("a job was granted without capacity")
		}
		time.Sleep(time.Second)
		if got.Load() == nil {
			t.Error("the request still waits although there is capacity again")
		}
	})
}

// TestEndOfStarvationWakesRequests: units are kept for a job that has starved, until its lock is taken by another. Then
// the requests that were denied those units may have them.
func TestEndOfStarvationWakesRequests(t *testing.T) {
	small := config()
	small.TotalUnits, small.ReserveUnits = 4, 0
	inWorld(t, small, func(t *testing.T, w *world) {
		submit := func(typ string, n int64, lock string) {
			w.submit(func(s *lessor.Submission) {
				s.Type, s.RequestedUnits = &typ, &n
				ofTenant(0, lock)(s)
			})
		}
		submit("first", 2, "")
		first := w.lease("holder", types("first"))
		submit("large", 3, "the-lock")
		for range 5 { // it starves
			if g, _ := w.ask("asking", types("large")); g != nil {
				t.Fatalf("granted %+v", g)
			}
			time.Sleep(15 * time.Second)
			w.mustBeat(first)
		}
		w.mustComplete(first, "completed") // it fits now, and nobody asks for it
		submit("waited for", 2, "")
		got := w.poll(anybody, "waiter", types("waited for"))
		time.Sleep(5 * time.Second)
		if got.Load() != nil {
			t.Fatal("a job was granted units that are kept for another")
		}
		submit("locking", 1, "the-lock")
		w.lease("locker", types("locking"))
		time.Sleep(10 * time.Millisecond)
		if got.Load() == nil {
			t.Error("the request still waits although no units are kept any more")
		}
	})
}

func units(n int64) func(*lessor.Submission) {
	return func(s *lessor.Submission) { s.RequestedUnits = &n }
}

func ofTenant(n byte, lock string) func(*lessor.Submission) {
	return func(s *lessor.Submission) {
		if n > 0 {
			id := lessor.UUID{15: n}.String()
			s.TenantID = &id
		}
		if lock != "" {
			s.LockKey = &lock
		}
	}
}

// TestRequestsGetJobsInTheOrderInWhichTheyCame has requests of two kinds wait for the same jobs.
func TestRequestsGetJobsInTheOrderInWhichTheyCame(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		var got []*atomic.Pointer[lessor.Grant]
		for i := range 6 {
			own := fmt.Sprintf("own-%d", i%2)
			got = append(got, w.poll(anybody, fmt.Sprintf("worker-%d", i), types("wanted", own)))
			synctest.Wait()
		}
		for first := 0; first < len(got); first += 3 {
			wanted := lessor.Submission{Type: new("wanted")}
			if _, err := w.SubmitBatch(w.ctx, anybody, []lessor.Submission{wanted, wanted, wanted}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			for i, g := range got {
				if want := i < first+3; (g.Load() != nil) != want {
					t.Errorf("after %d jobs request %d has one: %t, want %t", first+3, i, !want, want)
				}
			}
		}
	})
}

// TestManyWokenAtOnceAreTriedInTurns has more requests woken than one pass may look at: all are tried, in several
// passes that follow each other at once.
func TestManyWokenAtOnceAreTriedInTurns(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		const requests = 250
		for i := range requests {
			many := make([]string, 200)
			for j := range many {
				many[j] = fmt.Sprintf("type-%d-%d", i, j)
			}
			many[0] = "wanted"
			w.poll(anybody, fmt.Sprintf("worker-%d", i), types(many...))
		}
		synctest.Wait()
		time.Sleep(time.Second)
		w.retried()
		w.submit(func(s *lessor.Submission) { s.Type = new("wanted") })
		time.Sleep(10 * time.Millisecond)
		w.mu.Lock()
		defer w.mu.Unlock()
		sum := 0
		for _, s := range w.stats {
			if s.Retried > 150 {
				t.Errorf("one pass tried %d requests of 200 types each", s.Retried)
			}
			sum += s.Retried
		}
		if sum != requests {
			t.Errorf("%d requests were tried again, want all %d once", sum, requests)
		}
	})
}

// TestJobWakesNoMoreEqualRequestsThanNeeded has many equal requests wait: for each job the scheduler tries one request
// that gets it and one that does not, and the job goes to the request that has waited longest.
func TestJobWakesNoMoreEqualRequestsThanNeeded(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		const requests, jobs = 300, 3
		got := make([]*atomic.Pointer[lessor.Grant], requests)
		for i := range got {
			got[i] = w.poll(anybody, fmt.Sprintf("worker-%d", i), types("wanted"))
			synctest.Wait()
		}
		w.retried()
		for range jobs {
			w.submit(func(s *lessor.Submission) { s.Type = new("wanted") })
			time.Sleep(time.Second)
		}
		for i, g := range got {
			if (g.Load() != nil) != (i < jobs) {
				t.Errorf("request %d: grant %v, want one for each of the first %d", i, g.Load(), jobs)
			}
		}
		if n := w.retried(); n > 2*jobs {
			t.Errorf("%d of %d equal requests were tried for %d jobs, want two for each", n, requests, jobs)
		}
	})
}

// TestEqualRequestsAreWokenTogether has equal requests wait of which only the first was tried: capacity that becomes
// free later wakes the others too.
func TestEqualRequestsAreWokenTogether(t *testing.T) {
	full := config()
	full.TotalUnits, full.ReserveUnits = 2, 0
	inWorld(t, full, func(t *testing.T, w *world) {
		first := w.poll(anybody, "first", types("generic"))
		synctest.Wait()
		second := w.poll(anybody, "second", types("generic"))
		synctest.Wait()
		w.submit(func(s *lessor.Submission) { s.Type, s.RequestedUnits = new("large"), new(int64(2)) })
		large := w.lease("holder", types("large"))
		w.submit(nil)
		w.submit(nil)
		time.Sleep(time.Second)
		if first.Load() != nil || second.Load() != nil {
			t.Fatal("a job was granted without capacity")
		}
		w.mustComplete(large, "completed")
		time.Sleep(10 * time.Millisecond)
		if first.Load() == nil || second.Load() == nil {
			t.Errorf("got %v and %v, want a job for both requests that lacked capacity", first.Load(), second.Load())
		}
	})
}

// TestUniqueJobFindsTheWorkerThatHoldsNone has many equal requests wait, all but the last by workers that hold a
// lease: the unique job goes to the last.
func TestUniqueJobFindsTheWorkerThatHoldsNone(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		const holders = 20
		for i := range holders {
			w.submit(nil)
			w.lease(fmt.Sprintf("holder-%d", i), nil)
		}
		for i := range holders {
			w.poll(anybody, fmt.Sprintf("holder-%d", i), types("generic"))
			synctest.Wait()
		}
		free := w.poll(anybody, "free", types("generic"))
		synctest.Wait()
		w.submit(func(s *lessor.Submission) { s.Unique = new(true) })
		time.Sleep(10 * time.Millisecond)
		if free.Load() == nil {
			t.Error("the unique job was not granted to the worker that holds no lease")
		}
	})
}

// TestWaitingRequestsEndWithTheLastDenialOfTheirKind denies one of two equal requests for lack of capacity: the other,
// which was not tried again, gets the same denial.
func TestWaitingRequestsEndWithTheLastDenialOfTheirKind(t *testing.T) {
	full := config()
	full.TotalUnits, full.ReserveUnits = 1, 0
	inWorld(t, full, func(t *testing.T, w *world) {
		denials := make(chan *lessor.Denial, 2)
		for _, worker := range []string{"first", "second"} {
			go func() {
				_, d := w.ask(worker, func(r *lessor.LeaseRequest) {
					r.WaitMS, r.Types = new(int64(5000)), []string{"generic"}
				})
				denials <- d
			}()
			synctest.Wait()
		}
		w.submit(func(s *lessor.Submission) { s.Type = new("other") })
		w.lease("holder", types("other"))
		w.submit(nil)
		for range 2 {
			if d := <-denials; d == nil || d.Code != lessor.NoCapacity {
				t.Errorf("got %+v, want the denial %s", d, lessor.NoCapacity)
			}
		}
	})
}
