package scheduler_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

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
