package scheduler_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// gatedStore is a store whose transactions wait for its gate.
type gatedStore struct {
	scheduler.Store
	gate atomic.Pointer[chan struct{}] // nil = open
}

func (s *gatedStore) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	if gate := s.gate.Load(); gate != nil {
		<-*gate
	}
	return s.Store.Update(ctx, fn)
}

func (s *gatedStore) Send(ctx context.Context, _ scheduler.Footing, fn func(scheduler.Tx) error) (func() error, error) {
	return sendByUpdate(ctx, s, fn)
}

// inOneBatch makes calls, in this order, while the commit of a submission is held: all are dealt with in the next. It
// returns when the world has come to rest.
func (w *world) inOneBatch(store *gatedStore, calls ...func()) {
	gate := make(chan struct{})
	store.gate.Store(&gate)
	w.submitting()
	for _, call := range calls {
		go call()
		synctest.Wait()
	}
	close(gate)
	synctest.Wait()
}

// TestRepeatsInOneCommitListEachLeaseOnce has many repeats of one request wait for the same commit.
func TestRepeatsInOneCommitListEachLeaseOnce(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.halt()
		var store *gatedStore
		w.wrap = func(s scheduler.Store) scheduler.Store {
			store = &gatedStore{Store: s}
			return store
		}
		w.start()
		for range 3 {
			w.submit(nil)
		}
		ask := func(r *lessor.LeaseRequest) { r.RequestID, r.MaxLeases = new("r-1"), new(int64(3)) }
		if first := w.askAs(anybody, "w1", ask); len(first) != 3 {
			t.Fatalf("%d leases are granted, want 3", len(first))
		}
		gate := make(chan struct{})
		store.gate.Store(&gate)
		var all sync.WaitGroup
		all.Go(func() { w.submit(nil) })
		synctest.Wait() // the commit of the submission is held; what comes now is the next batch
		for range 8 {
			all.Go(func() {
				if got := w.askAs(anybody, "w1", ask); len(got) != 3 {
					t.Errorf("a repeated request lists %d leases, want each of 3 once", len(got))
				}
			})
		}
		synctest.Wait()
		close(gate)
		all.Wait()
	})
}

// TestRepeatForSomethingElseReplacesARequestThatWaits: a worker that stops repeats its request, whose connection the
// server may not know to be closed, and then gives its jobs back.
func TestRepeatForSomethingElseReplacesARequestThatWaits(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		ask := func(id, jobType string, wait int64) func(*lessor.LeaseRequest) {
			return func(r *lessor.LeaseRequest) {
				r.RequestID, r.Types, r.WaitMS = new(id), []string{jobType}, new(wait)
			}
		}
		given := w.submit(nil)
		g := w.lease("worker-1", nil)
		abandoned := w.poll(anybody, "worker-1", ask("r-1", given.Type, 30_000))
		same := w.poll(anybody, "worker-1", ask("r-2", "other", 30_000))
		time.Sleep(time.Second)
		start := time.Now()
		for _, id := range []string{"r-1", "r-2"} {
			if _, d := w.ask("worker-1", ask(id, "other", 0)); d == nil || time.Since(start) > 10*time.Millisecond {
				t.Fatalf("a request for types without jobs: denial %v after %v", d, time.Since(start))
			}
		}
		w.giveBack(g)
		time.Sleep(time.Second)
		w.wantState(given.ID, lessor.Queued)
		other := w.submit(func(s *lessor.Submission) { s.Type = new("other") })
		time.Sleep(time.Second)
		if abandoned.Load() != nil || same.Load() == nil || same.Load().Job.ID != other.ID {
			t.Errorf("the request that was replaced got %v, want nothing; the other got %v, want job %v",
				abandoned.Load(), same.Load(), other.ID)
		}
		w.noDrift()
	})
}

// TestRepeatReplacesARequestThatCameWithIt has a worker cancel and repeat its request while a commit is under way.
func TestRepeatReplacesARequestThatCameWithIt(t *testing.T) {
	store := &gatedStore{}
	inWrappedWorld(t, func(s scheduler.Store) scheduler.Store { store.Store = s; return store },
		func(t *testing.T, w *world) {
			ask := func(jobType string, wait int64) *atomic.Pointer[lessor.Grant] {
				return w.poll(anybody, "worker-1", func(r *lessor.LeaseRequest) {
					r.RequestID, r.Types, r.WaitMS = new("r-1"), []string{jobType}, new(wait)
				})
			}
			var abandoned *atomic.Pointer[lessor.Grant]
			w.inOneBatch(store, func() { abandoned = ask("wanted", 30_000) }, func() { ask("other", 0) })
			job := w.submit(func(s *lessor.Submission) { s.Type = new("wanted") })
			synctest.Wait()
			if got := abandoned.Load(); got != nil {
				t.Errorf("the request that was replaced got %v", got)
			}
			w.wantState(job.ID, lessor.Queued)
		})
}

// The call that ended a lease is answered the same when it comes again. Any other call on that lease is too late.
func TestCompletionIsRepeatedOnlyWithTheSameResult(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		end := func(g lessor.Grant, status, result, text string) error {
			c := lessor.Completion{WorkerID: &g.Lease.WorkerID, Status: &status}
			if result != "" {
				c.Result = json.RawMessage(result)
			}
			if text != "" {
				c.Error = &text
			}
			return w.Complete(w.ctx, anybody, g.Lease.ID, c)
		}
		type call struct{ status, result, text string }
		for _, c := range []struct {
			first, same call
			others      []call
		}{
			{
				call{"completed", `{"n":1}`, ""},
				call{"completed", ` { "n" : 1 } `, ""},
				[]call{
					{"completed", `{"n":2}`, ""},
					{"completed", "", ""},
					{"failed", `{"n":1}`, ""},
					{"completed", `{"n":1}`, "x"},
				},
			},
			{
				call{"completed", "", ""},
				call{"completed", "null", ""},
				[]call{{"completed", "{}", ""}, {"failed", "", ""}},
			},
			{
				call{"failed", "", "boom"},
				call{"failed", "", "boom"},
				[]call{{"failed", "", "bang"}, {"failed", "", ""}},
			},
		} {
			job := w.submit(func(s *lessor.Submission) { s.MaxAttempts = new(int64(1)) })
			g := w.lease("w1", nil)
			for _, again := range []call{c.first, c.first, c.same} {
				if err := end(g, again.status, again.result, again.text); err != nil {
					t.Errorf("%v and then %v: %v", c.first, again, err)
				}
			}
			was := w.job(job.ID)
			for _, o := range c.others {
				e := w.wantCode(end(g, o.status, o.result, o.text), lessor.CodeLeaseNotFound)
				if e.EndedReason != c.first.status {
					t.Errorf("%v and then %v: ended_reason is %q", c.first, o, e.EndedReason)
				}
			}
			if is := w.job(job.ID); string(is.Result) != string(was.Result) || is.State != was.State {
				t.Errorf("calls on an ended lease made %+v of %+v", is, was)
			}
		}
	})
}
