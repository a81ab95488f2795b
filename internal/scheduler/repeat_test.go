package scheduler_test

import (
	"context"
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
