package scheduler_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
	"lessor/internal/scheduler"
)

// turnOf is a turn of worker w1 that completes one lease, keeps another and asks for up to n.
func turnOf(complete, beat lessor.Grant, n int64) lessor.Turn {
	return lessor.Turn{
		WorkerID: new("w1"), Heartbeat: []string{beat.Lease.ID.String()},
		Complete: []lessor.LeaseCompletion{{LeaseID: new(complete.Lease.ID.String()), Status: new("completed")}},
		Request:  &lessor.TurnRequest{MaxLeases: &n, RequestID: new("turn-1")},
	}
}

// counter counts the commits that had one end, one heartbeat and one grant.
func counter(cfg *scheduler.Config) *atomic.Int64 {
	var n atomic.Int64
	cfg.Observe = func(s scheduler.Stats) {
		if len(s.Ended) == 1 && s.Beats == 1 && s.Granted == 1 && s.Err == nil {
			n.Add(1)
		}
	}
	return &n
}

func TestTurnIsOneCommit(t *testing.T) {
	check := func(t *testing.T, w *world) {
		for range 3 {
			w.submit(nil)
		}
		held, _ := w.askMany("w1", func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(2)) })
		turn := turnOf(held[0], held[1], 5)
		first, err := w.Turn(w.ctx, anybody, turn)
		if err != nil {
			t.Fatal(err)
		}
		if len(first.Complete) != 1 || first.Complete[0].Err != nil || len(first.Heartbeat) != 1 ||
			first.Heartbeat[0].Err != nil || !first.Heartbeat[0].Beat.OK || len(first.Grants) != 1 {
			t.Fatalf("the turn is answered %+v, want one end, one heartbeat and one grant", first)
		}
		w.wantState(held[0].Job.ID, lessor.Completed)
		w.wantState(held[1].Job.ID, lessor.Running)
		again, err := w.Turn(w.ctx, anybody, turn)
		if err != nil || again.Complete[0].Err != nil || len(again.Grants) != 1 ||
			again.Grants[0].Lease.ID != first.Grants[0].Lease.ID {
			t.Errorf("the same turn again is answered %+v (error %v), want the same leases", again, err)
		}
	}
	wantOne := func(t *testing.T, commits *atomic.Int64) {
		if n := commits.Load(); n != 1 {
			t.Errorf("%d commits had all parts of the turn, want 1", n)
		}
	}
	t.Run("SQLite", func(t *testing.T) {
		inWorld(t, config(), func(t *testing.T, w *world) {
			check(t, w)
			w.mu.Lock()
			defer w.mu.Unlock()
			var cfg scheduler.Config
			commits := counter(&cfg)
			for _, s := range w.stats {
				cfg.Observe(s)
			}
			wantOne(t, commits)
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		cfg := config()
		commits := counter(&cfg)
		w := node(t, pool.Database(t), cfg, nil)
		check(t, w)
		wantOne(t, commits)
	})
}

func TestTurnWithAWrongPartChangesNothing(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		w.submit(nil)
		held, _ := w.askMany("w1", func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(2)) })
		for field, spoil := range map[string]func(*lessor.Turn){
			"worker_id":          func(u *lessor.Turn) { u.WorkerID = new("") },
			"complete[0].status": func(u *lessor.Turn) { u.Complete[0].Status = new("done") },
			"complete":           func(u *lessor.Turn) { u.Complete = make([]lessor.LeaseCompletion, 1001) },
			"heartbeat":          func(u *lessor.Turn) { u.Heartbeat = make([]string, 1001) },
			"request.max_leases": func(u *lessor.Turn) { u.Request.MaxLeases = new(int64(0)) },
			"request.view":       func(u *lessor.Turn) { u.Request.View = new("half") },
			"body":               func(u *lessor.Turn) { *u = lessor.Turn{WorkerID: new("w1")} },
		} {
			turn := turnOf(held[0], held[1], 1)
			spoil(&turn)
			_, err := w.Turn(w.ctx, anybody, turn)
			e := w.wantCode(err, lessor.CodeInvalidValue)
			if len(e.Fields) == 0 || e.Fields[0].Field != field {
				t.Errorf("the refusal names %v, want %s", e.Fields, field)
			}
		}
		w.wantState(held[0].Job.ID, lessor.Leased)
		w.wantState(held[1].Job.ID, lessor.Leased)
	})
}

func TestTurnAnswersEachLeaseForItself(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		w.submit(nil)
		held, other := w.lease("w1", nil), w.lease("w2", nil)
		turn := turnOf(held, other, 1)
		turn.Complete = append(turn.Complete, lessor.LeaseCompletion{LeaseID: new("no-id"), Status: new("failed")})
		turn.Heartbeat = append(turn.Heartbeat, held.Lease.ID.String())
		got, err := w.Turn(w.ctx, anybody, turn)
		if err != nil {
			t.Fatal(err)
		}
		var codes []string
		for _, a := range append(got.Complete, got.Heartbeat...) {
			codes = append(codes, string(lessor.CodeOf(a.Err)))
		}
		want := []string{"", "lease_not_found", "worker_mismatch", ""}
		if diff := cmp.Diff(want, codes); diff != "" || got.Denial == nil || got.Denial.Code != lessor.NoEligibleJob {
			t.Errorf("answered %+v, %+v (-want +got):\n%s", codes, got.Denial, diff)
		}
	})
}

// TestEndsOfATurnDoNotWaitForItsRequest has a request that waits: the other parts are done meanwhile.
func TestEndsOfATurnDoNotWaitForItsRequest(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		w.submit(nil)
		held, _ := w.askMany("w1", func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(2)) })
		turn := turnOf(held[0], held[1], 1)
		turn.Request.WaitMS = new(int64(10_000))
		var got scheduler.TurnAnswer
		var all sync.WaitGroup
		all.Go(func() {
			var err error
			if got, err = w.Turn(w.ctx, anybody, turn); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		w.wantState(held[0].Job.ID, lessor.Completed)
		next := w.submit(nil)
		all.Wait()
		if len(got.Grants) != 1 || got.Grants[0].Job.ID != next.ID {
			t.Errorf("the waiting request is answered %+v, want the new job", got)
		}
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		turn.Complete, turn.Request.RequestID = nil, new("turn-2")
		if _, err := w.Turn(ctx, anybody, turn); err == nil {
			t.Error("a turn whose caller left is answered")
		}
		w.submit(nil)
		w.lease("w2", nil) // and not to the caller that left
	})
}

// refusing is a store that refuses the values of some transactions.
type refusing struct {
	gatedStore
	refuse atomic.Int32 // how many more
}

func (s *refusing) Send(ctx context.Context, _ scheduler.Footing, fn func(scheduler.Tx) error) (func() error, error) {
	return sendByUpdate(ctx, s, fn)
}

func (s *refusing) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	return s.gatedStore.Update(ctx, func(tx scheduler.Tx) error {
		if s.refuse.Add(-1) >= 0 {
			return fmt.Errorf("a value: %w", scheduler.ErrBadCall)
		}
		return fn(tx)
	})
}

// TestTurnStaysWholeWhenItsBatchIsHalved has the store refuse a batch with a turn in it.
func TestTurnStaysWholeWhenItsBatchIsHalved(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.halt()
		var store *refusing
		w.wrap = func(s scheduler.Store) scheduler.Store {
			store = &refusing{gatedStore: gatedStore{Store: s}}
			return store
		}
		w.start()
		for range 3 {
			w.submit(nil)
		}
		held, _ := w.askMany("w1", func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(2)) })
		gate := make(chan struct{})
		store.gate.Store(&gate)
		var all sync.WaitGroup
		all.Go(func() { w.submit(nil) })
		synctest.Wait() // its commit is held; what comes now is the next batch
		all.Go(func() { w.submit(nil) })
		all.Go(func() {
			if got, err := w.Turn(w.ctx, anybody, turnOf(held[0], held[1], 1)); err != nil || len(got.Grants) != 1 {
				t.Errorf("answered %+v, error %v", got, err)
			}
		})
		synctest.Wait()
		gate <- struct{}{}
		synctest.Wait()       // the next batch is at the gate
		store.refuse.Store(2) // the batch, and its repetition on a fold that was read anew
		close(gate)
		all.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		var cfg scheduler.Config
		commits := counter(&cfg)
		for _, s := range w.stats {
			cfg.Observe(s)
		}
		if commits.Load() != 1 || store.refuse.Load() >= 0 {
			t.Errorf("the parts of a turn were not committed together: %+v", w.stats)
		}
	})
}

// TestTurnCountsAsOneCall, whatever its parts: the next turn does not wait for more callers than were answered.
func TestTurnCountsAsOneCall(t *testing.T) {
	withPendingCommits(t, func(t *testing.T, w *world, commits *pendingStore) {
		for range 6 {
			w.submit(nil)
		}
		held, _ := w.askMany("w1", func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(6)) })
		turn := func(n int) {
			if _, err := w.Turn(w.ctx, anybody, turnOf(held[n], held[n+1], 1)); err != nil {
				t.Error(err)
			}
		}
		turn(0)
		commits.hold(nil, false)
		var both sync.WaitGroup
		for _, n := range []int{2, 4} {
			both.Go(func() { turn(n) })
			synctest.Wait()
		}
		if len(commits.pending) != 2 {
			t.Errorf("%d commits are pending, want 2", len(commits.pending))
		}
		commits.finishAll()
		both.Wait()
	})
}
