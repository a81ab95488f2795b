package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"lessor"
)

// TestChangedOrderWakesRequestsBehindALargeJob has a request wait because the job whose turn it is does not fit, with a
// small one behind it. No capacity becomes free, but then it is the small one's turn. Another large job starves
// meanwhile, so that the scheduler does not watch the first.
func TestChangedOrderWakesRequestsBehindALargeJob(t *testing.T) {
	job := func(typ string, n int64, more ...func(*lessor.Submission)) func(*lessor.Submission) {
		return func(s *lessor.Submission) {
			s.Type, s.RequestedUnits = &typ, &n
			for _, edit := range more {
				edit(s)
			}
		}
	}
	class := func(name string) func(*lessor.Submission) {
		return func(s *lessor.Submission) { s.FairnessClass = &name }
	}
	for _, c := range []struct {
		name         string
		large, small func(*lessor.Submission)
		changes      func(w *world, g lessor.Grant)
	}{
		{
			"a lock is taken", job("large", 80, ofTenant(0, "the-lock")), job("small", 1),
			func(w *world, _ lessor.Grant) {
				w.submit(job("next", 1, ofTenant(0, "the-lock")))
				w.lease("another", types("next"))
			},
		},
		{
			"a tenant reaches its cap", job("large", 80, ofTenant(1, "")), job("small", 1, ofTenant(2, "")),
			func(w *world, _ lessor.Grant) {
				w.submit(job("next", 1, ofTenant(1, "")))
				w.lease("another", types("next"))
			},
		},
		{
			"another tenant has had less", job("large", 80, ofTenant(3, "")), job("small", 1, ofTenant(4, "")),
			func(w *world, _ lessor.Grant) {
				w.submit(job("next", 1, ofTenant(3, "")))
				w.lease("another", types("next"))
			},
		},
		{
			"a job of a class that has had less is queued", job("large", 80), job("small", 1),
			func(w *world, _ lessor.Grant) { w.submit(job("small", 1, class("another"))) },
		},
		{
			"an older job is queued again", job("large", 80), job("small", 1),
			func(w *world, older lessor.Grant) {
				back := lessor.Release{WorkerID: &older.Lease.WorkerID, DelayMS: new(int64(100))}
				if err := w.Release(w.ctx, anybody, older.Lease.ID, back); err != nil {
					w.t.Fatal(err)
				}
			},
		},
		{
			"less is usable than the large job needs", job("large", 110), job("small", 1),
			func(*world, lessor.Grant) { time.Sleep(10 * time.Second) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config()
			cfg.ReserveUnits = 0
			inWorld(t, cfg, func(t *testing.T, w *world) {
				more := lessor.CapacityAsk{TotalUnits: lessor.SetTo(int64(130)), ExpiresInS: new(int64(10))}
				if _, err := w.SetCapacity(w.ctx, anybody, more); err != nil {
					t.Fatal(err)
				}
				capped := lessor.TenantID{UUID: lessor.UUID{15: 1}}
				w.setTenant(capped, lessor.TenantAsk{MaxConcurrency: lessor.SetTo(int64(1))})
				w.submit(job("small", 1))
				older := w.lease("holder", asksFor("small"))
				w.submit(job("held", 59))
				w.lease("holder", asksFor("held"))
				w.submit(job("starves", 90))
				if _, d := w.ask("another", types("starves")); d == nil || d.Code != lessor.NextJobTooLarge {
					t.Fatalf("the job that starves: %+v, want %s", d, lessor.NextJobTooLarge)
				}
				w.submit(c.large)
				got := w.poll(anybody, "waiter", types("large", "small"))
				synctest.Wait()
				w.submit(c.small)
				time.Sleep(time.Second)
				if got.Load() != nil {
					t.Fatalf("the %s job was granted, want none before the large one", got.Load().Job.Type)
				}
				c.changes(w, older)
				time.Sleep(time.Second)
				if got.Load() == nil {
					t.Error("the request still waits although the first job fits")
				}
			})
		})
	}
}

// TestEndOfTheReserveWakesRequests: units are kept for a job that has starved until nobody asks for it any more. Nobody
// calls then.
func TestEndOfTheReserveWakesRequests(t *testing.T) {
	cfg := config()
	cfg.TotalUnits, cfg.ReserveUnits = 20, 0
	inWorld(t, cfg, func(t *testing.T, w *world) {
		w.submitUnits("held", 10)
		w.lease("holder", asksFor("held"))
		w.submitUnits("large", 20)
		if _, d := w.ask("asking", asksFor("large")); d == nil || d.Code != lessor.NextJobTooLarge {
			t.Fatalf("the large job: %+v, want %s", d, lessor.NextJobTooLarge)
		}
		time.Sleep(5*time.Minute - 5*time.Second)
		w.submitUnits("small", 1)
		got := w.poll(anybody, "waiter", types("small"))
		time.Sleep(4 * time.Second)
		if got.Load() != nil {
			t.Fatal("a job was granted units that are kept for another")
		}
		time.Sleep(2 * time.Second)
		if got.Load() == nil {
			t.Error("the request still waits although no units are kept any more")
		}
	})
}

// TestBeginOfTheReserveWakesRequests has a request wait for a job that is too large and one that was too large before.
// When the second has starved, it goes before the first. Nobody calls then.
func TestBeginOfTheReserveWakesRequests(t *testing.T) {
	cfg := config()
	cfg.TotalUnits, cfg.ReserveUnits = 20, 0
	inWorld(t, cfg, func(t *testing.T, w *world) {
		w.submitUnits("held", 2)
		w.lease("holder", asksFor("held"))
		w.submitUnits("first", 14)
		first := w.lease("holder", asksFor("first"))
		w.submitUnits("starves", 8)
		if _, d := w.ask("asking", asksFor("starves")); d == nil || d.Code != lessor.NextJobTooLarge {
			t.Fatalf("the job that starves: %+v, want %s", d, lessor.NextJobTooLarge)
		}
		time.Sleep(50 * time.Second)
		w.submit(func(s *lessor.Submission) {
			s.Type, s.RequestedUnits, s.Priority = new("larger"), new(int64(20)), new("high")
		})
		w.mustComplete(first, "completed")
		got := w.poll(anybody, "waiter", types("larger", "starves"))
		time.Sleep(9 * time.Second)
		if got.Load() != nil {
			t.Fatal("a job was granted before the larger one of a higher priority")
		}
		time.Sleep(2 * time.Second)
		if got.Load() == nil {
			t.Error("the request still waits although the job that has starved goes first now")
		}
	})
}

// TestUniqueJobThatDoesNotFitIsGrantedWhenItDoes: a unique job needs more units than are free. A worker that holds a
// lease waits before one that holds none. The latter gets the job when units become free.
func TestUniqueJobThatDoesNotFitIsGrantedWhenItDoes(t *testing.T) {
	cfg := config()
	cfg.TotalUnits, cfg.ReserveUnits = 10, 0
	inWorld(t, cfg, func(t *testing.T, w *world) {
		w.submit(nil)
		w.lease("holder", nil)
		var others []lessor.Grant
		for range 2 {
			w.submit(func(s *lessor.Submission) { s.RequestedUnits = new(int64(4)) })
			others = append(others, w.lease("other", nil))
		}
		w.poll(anybody, "holder", types("generic"))
		synctest.Wait()
		free := w.poll(anybody, "free", types("generic"))
		synctest.Wait()
		w.submit(func(s *lessor.Submission) { s.Unique, s.RequestedUnits = new(true), new(int64(6)) })
		for _, g := range others {
			time.Sleep(time.Second)
			w.mustComplete(g, "completed")
		}
		time.Sleep(time.Second)
		if free.Load() == nil {
			t.Error("the unique job was not granted to the worker that holds no lease")
		}
	})
}
