package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// faulty is a store that fails when the test says so.
type faulty struct {
	scheduler.Store
	fail    atomic.Pointer[error]           // every Update fails with it, before it begins
	refuse  func(specs []*rules.Spec) error // of Insert
	beats   atomic.Pointer[error]           // SaveLeases fails with it
	alerts  atomic.Pointer[error]           // SaveAlerts fails with it
	commit  atomic.Pointer[error]           // every commit fails with it
	due     func()                          // before Due
	locked  atomic.Bool                     // another node has locked all circuits
	reads   atomic.Pointer[error]           // every View fails with it
	after   func()                          // between the commit and its answer
	updates atomic.Int64
	views   atomic.Int64
	counts  atomic.Int64 // how often a transaction read all leases
}

func (f *faulty) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	f.updates.Add(1)
	if err := f.fail.Load(); err != nil {
		return *err
	}
	err := f.Store.Update(ctx, func(tx scheduler.Tx) error {
		err := fn(faultyTx{tx, f})
		if refused := f.commit.Load(); err == nil && refused != nil {
			return *refused
		}
		return err
	})
	if err == nil && f.after != nil {
		f.after()
	}
	return err
}

func (f *faulty) Send(ctx context.Context, _ scheduler.Footing, fn func(scheduler.Tx) error) (func() error, error) {
	return sendByUpdate(ctx, f, fn)
}

// sendByUpdate is a Send whose commit has ended when it returns.
func sendByUpdate(ctx context.Context, s scheduler.Store, fn func(scheduler.Tx) error) (func() error, error) {
	if err := s.Update(ctx, fn); err != nil {
		return nil, err
	}
	return func() error { return nil }, nil
}

func (f *faulty) View(ctx context.Context, fn func(scheduler.View) error) error {
	f.views.Add(1)
	if err := f.reads.Load(); err != nil {
		return *err
	}
	return f.Store.View(ctx, fn)
}

func (f *faulty) Serve(ctx context.Context, anew bool) (rules.Serving, error) {
	if err := f.fail.Load(); err != nil {
		return rules.Serving{}, *err
	}
	return f.Store.Serve(ctx, anew)
}

type faultyTx struct {
	scheduler.Tx
	f *faulty
}

func (t faultyTx) Insert(ctx context.Context, specs []*rules.Spec) error {
	if t.f.refuse != nil {
		if err := t.f.refuse(specs); err != nil {
			return err
		}
	}
	return t.Tx.Insert(ctx, specs)
}

func (t faultyTx) Due(ctx context.Context, now lessor.Instant, limit int) ([]scheduler.Waiting, error) {
	if t.f.due != nil {
		t.f.due()
	}
	return t.Tx.Due(ctx, now, limit)
}

func (t faultyTx) LockCircuits(ctx context.Context, ids []string, wait bool) (map[string]*rules.Circuit, error) {
	if t.f.locked.Load() && !wait {
		return nil, nil
	}
	return t.Tx.LockCircuits(ctx, ids, wait)
}

func (t faultyTx) SaveLeases(ctx context.Context, held []*rules.Held) error {
	if err := t.f.beats.Load(); err != nil && len(held) > 0 {
		return *err
	}
	return t.Tx.SaveLeases(ctx, held)
}

func (t faultyTx) SaveAlerts(ctx context.Context, alerts []lessor.Alert) error {
	if err := t.f.alerts.Load(); err != nil {
		return *err
	}
	return t.Tx.SaveAlerts(ctx, alerts)
}

func (t faultyTx) EachLease(ctx context.Context, fn func(*rules.Held) error) error {
	t.f.counts.Add(1)
	return t.Tx.EachLease(ctx, fn)
}

// inFaultyWorld runs test over a store that can be made to fail.
func inFaultyWorld(t *testing.T, test func(t *testing.T, w *world, f *faulty)) {
	t.Helper()
	f := &faulty{}
	inWrappedWorld(t, func(s scheduler.Store) scheduler.Store { f.Store = s; return f },
		func(t *testing.T, w *world) { test(t, w, f) })
}

// inWrappedWorld runs test over the store that wrap returns.
func inWrappedWorld(t *testing.T, wrap func(scheduler.Store) scheduler.Store, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, ctx: t.Context(), path: t.TempDir() + "/lessor.db", cfg: config(), wrap: wrap}
		w.start()
		defer func() { w.halt() }()
		test(t, w)
	})
}

func TestOneBadCallDoesNotFailTheOthers(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		f.refuse = func(specs []*rules.Spec) error {
			for _, s := range specs {
				if s.Lane.Type == "guilty" {
					return fmt.Errorf("a value: %w", scheduler.ErrBadCall)
				}
			}
			return nil
		}
		const n = 31
		var good, bad atomic.Int64
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				typ := "generic"
				if i == 13 {
					typ = "guilty"
				}
				_, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: &typ})
				switch {
				case err == nil:
					good.Add(1)
				case typ == "guilty" && errors.Is(err, scheduler.ErrBadCall):
					bad.Add(1)
				default:
					t.Errorf("%s: %v", typ, err)
				}
			})
		}
		all.Wait()
		if good.Load() != n-1 || bad.Load() != 1 {
			t.Errorf("%d calls were answered and %d refused, want %d and 1", good.Load(), bad.Load(), n-1)
		}
		if got := w.depth(); got != n-1 {
			t.Errorf("%d jobs are queued, want %d", got, n-1)
		}
		w.noDrift()
	})
}

func (w *world) depth() int {
	w.t.Helper()
	st, err := w.Status(w.ctx, anybody)
	if err != nil {
		w.t.Fatal(err)
	}
	d := st.QueueDepth
	return d.High + d.Normal + d.Low + d.Background
}

func TestFullStoreRefusesExpiresNothingAndGoesOnByItself(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		job := w.submit(nil)
		g := w.lease("worker-1", nil)
		full := fmt.Errorf("disk: %w", scheduler.ErrFull)
		f.fail.Store(&full)
		_, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")})
		if e := w.wantCode(err, lessor.CodeUnavailable); e.RetryAfter == 0 || e.OutcomeUnknown {
			t.Errorf(
				"retry after %v, outcome unknown %v; want a pause and nothing changed", e.RetryAfter, e.OutcomeUnknown,
			)
		}
		for range 30 {
			time.Sleep(10 * time.Second)
			_, err := w.beat(g)
			w.wantCode(err, lessor.CodeUnavailable)
		}
		f.fail.Store(nil)
		time.Sleep(time.Second)
		w.mustBeat(g) // five ttl later: the outage was not charged
		w.wantState(job.ID, lessor.Running)
		if err := w.Ready(); err != nil {
			t.Errorf("not ready after the fault is gone: %v", err)
		}
	})
}

// TestFullStoreIsNotReadForEachCall: the tables have not changed, so the fold is kept.
func TestFullStoreIsNotReadForEachCall(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		kept := w.submit(nil)
		full := fmt.Errorf("disk: %w", scheduler.ErrFull)
		f.fail.Store(&full)
		before := f.views.Load()
		for range 20 {
			time.Sleep(time.Second)
			_, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")})
			w.wantCode(err, lessor.CodeUnavailable)
		}
		if n := f.views.Load() - before; n > 1 {
			t.Errorf("the tables were read %d times for 20 calls that were refused", n)
		}
		f.fail.Store(nil)
		time.Sleep(time.Second)
		w.noDrift()
		if g := w.lease("worker-1", nil); g.Job.ID != kept.ID {
			t.Errorf("job %s was granted, want the one that was stored", g.Job.ID)
		}
	})
}

// TestRefusedCommitLeavesNothingInMemory: the index follows what was committed, and nothing else.
func TestRefusedCommitLeavesNothingInMemory(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		kept := w.submit(nil)
		full := fmt.Errorf("disk: %w", scheduler.ErrFull)
		f.after = func() { f.commit.Store(&full) } // the next transaction is that of the cancel
		_, err := w.Cancel(w.ctx, anybody, kept.ID, false)
		w.wantCode(err, lessor.CodeUnavailable)
		f.after = nil
		f.commit.Store(nil)
		w.noDrift()
		f.commit.Store(&full)
		_, err = w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")})
		w.wantCode(err, lessor.CodeUnavailable)
		f.commit.Store(nil)
		w.noDrift()
		if g := w.lease("worker-1", nil); g.Job.ID != kept.ID {
			t.Errorf("job %s was granted, want the one that was stored", g.Job.ID)
		}
	})
}

// TestRecordIsWrittenWithItsChange refuses every commit after that of a cancel: the record has the entry of the cancel.
func TestRecordIsWrittenWithItsChange(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		job := w.submit(nil)
		full := fmt.Errorf("disk: %w", scheduler.ErrFull)
		f.after = func() {
			if w.job(job.ID).State == lessor.Cancelled {
				f.fail.Store(&full)
			}
		}
		_, err := w.Cancel(w.ctx, anybody, job.ID, false)
		f.after = nil
		f.fail.Store(nil)
		if err != nil {
			t.Fatal(err)
		}
		events, _, err := w.Events(w.ctx, anybody, job.ID, 100, "")
		if err != nil || events[len(events)-1].To != lessor.Cancelled {
			t.Errorf("the job is cancelled, and its record is %+v, %v", events, err)
		}
	})
}

// TestHeartbeatsThatTheStoreRefusesKeepLeasesAlive: only heartbeats fail, so the node keeps noting its service.
func TestHeartbeatsThatTheStoreRefusesKeepLeasesAlive(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		alive, silent := w.submit(nil), w.submit(nil)
		g, quiet := w.lease("worker-1", nil), w.lease("worker-2", nil)
		w.mustBeat(quiet)
		full := fmt.Errorf("disk: %w", scheduler.ErrFull)
		f.beats.Store(&full)
		for range 15 {
			_, err := w.beat(g)
			w.wantCode(err, lessor.CodeUnavailable)
			time.Sleep(20 * time.Second)
		}
		f.beats.Store(nil)
		w.mustBeat(g)
		w.wantState(alive.ID, lessor.Running)
		w.wantState(silent.ID, lessor.Running)
		time.Sleep(40 * time.Second)
		w.mustBeat(g)
		time.Sleep(2 * time.Second) // more than a ttl after the last beat that was refused
		if j := w.job(silent.ID); j.LeaseID != nil {
			t.Errorf("a silent lease is still %s when heartbeats are accepted again", j.State)
		}
		w.wantState(alive.ID, lessor.Running)
	})
}

func TestBrokenStoreEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{}
		w := &world{t: t, ctx: t.Context(), path: t.TempDir() + "/lessor.db", cfg: config()}
		w.wrap = func(s scheduler.Store) scheduler.Store { f.Store = s; return f }
		w.start()
		w.halt()
		w.start()
		defer w.store.(*faulty).Store.Close()
		broken := fmt.Errorf("fsync: %w", scheduler.ErrBroken)
		f.fail.Store(&broken)
		_, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")})
		w.wantCode(err, lessor.CodeUnavailable)
		_, err = w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")})
		w.wantCode(err, lessor.CodeUnavailable)
	})
}

func TestLostCommitAnswerIsAnUnknownOutcome(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		lost := fmt.Errorf("connection: %w", scheduler.ErrUnknownOutcome)
		f.fail.Store(&lost)
		_, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")})
		if e := w.wantCode(err, lessor.CodeUnavailable); !e.OutcomeUnknown {
			t.Error("the outcome is not said to be unknown")
		}
	})
}

func TestAnswersAfterCommit(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		var committed, answered atomic.Bool
		f.after = func() {
			time.Sleep(time.Second)
			if answered.Load() {
				t.Error("the call was answered before the commit was durable")
			}
			committed.Store(true)
			f.after = nil
		}
		w.submit(nil)
		answered.Store(true)
		if !committed.Load() {
			t.Error("the call was answered although nothing was committed")
		}
	})
}

func TestConcurrentCallsShareCommits(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		const n = 256
		// all others come while the first is being committed
		f.after = func() { f.after = nil; time.Sleep(time.Second) }
		before := f.updates.Load()
		var all sync.WaitGroup
		for range n {
			all.Go(func() { w.submit(nil) })
		}
		all.Wait()
		if commits := f.updates.Load() - before; commits > 3 {
			t.Errorf("%d calls took %d commits, want one for the first and one for the others", n, commits)
		}
	})
}

func TestStallOfOurOwnIsNotChargedToWorkers(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		job := w.submit(nil)
		g := w.lease("worker-1", nil)
		w.mustBeat(g)
		f.after = func() { f.after = nil; time.Sleep(10 * time.Minute) } // the disk takes its time
		w.submit(nil)
		w.wantState(job.ID, lessor.Running)
		time.Sleep(30 * time.Second)
		w.mustBeat(g)
	})
}

// TestConflictsAreRepeated: a commit that loses against another node's is reported as repeated. Its last try, and a
// commit that fails for another reason, is reported as failed.
func TestConflictsAreRepeated(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		w.submit(nil)
		for _, fault := range []error{scheduler.ErrAgain, scheduler.ErrFull} {
			f.fail.Store(new(fmt.Errorf("update: %w", fault)))
			_, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")})
			w.wantCode(err, lessor.CodeUnavailable)
			f.fail.Store(nil)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		var repeated, failed int
		for _, s := range w.stats {
			switch {
			case s.Repeated && !errors.Is(s.Err, scheduler.ErrAgain):
				t.Errorf("a commit that returned %v was reported as repeated", s.Err)
			case s.Repeated:
				repeated++
			case errors.Is(s.Err, scheduler.ErrAgain):
				failed++
			}
		}
		if failed == 0 || repeated != 5*failed {
			t.Errorf(
				"%d conflicts were reported as repeated and %d as failed, want five times as many", repeated, failed,
			)
		}
	})
}

// TestWaitingRequestEndsWhileTheStoreFails: a request that waits is refused when its time is up, although the store
// fails, and says why.
func TestWaitingRequestEndsWhileTheStoreFails(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		start, ended := time.Now(), make(chan error, 1)
		go func() {
			r := lessor.LeaseRequest{WorkerID: new("worker-1"), WaitMS: new(int64(5000))}
			_, _, err := w.Request(w.ctx, anybody, r)
			ended <- err
		}()
		synctest.Wait()
		full := fmt.Errorf("disk: %w", scheduler.ErrFull)
		f.fail.Store(&full)
		e := w.wantCode(<-ended, lessor.CodeUnavailable)
		took := time.Since(start)
		if took < 5*time.Second || took > 6*time.Second || !strings.Contains(e.Detail, "full") {
			t.Errorf("the request ended after %v with %q, want after 5 s that the disk is full", took, e.Detail)
		}
		f.fail.Store(nil)
	})
}

// TestBatchIsAnsweredThoughItsReasonsCannotBeRead: the store fails after a commit, while the reasons why other leases
// of the batch are over are looked up. The caller learns what was committed.
func TestBatchIsAnsweredThoughItsReasonsCannotBeRead(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		over, job := w.submit(nil), w.submit(nil)
		first, second := w.lease("worker-1", nil), w.lease("worker-1", nil)
		w.mustComplete(first, "completed")
		f.after = func() { f.reads.Store(&scheduler.ErrUnreachable) }
		var ends []lessor.LeaseCompletion
		for _, g := range []lessor.Grant{first, second} {
			ends = append(ends, lessor.LeaseCompletion{LeaseID: new(g.Lease.ID.String()), Status: new("failed")})
		}
		answers, err := w.CompleteAll(w.ctx, anybody, "worker-1", ends)
		f.after = nil
		f.reads.Store(nil)
		if err != nil || len(answers) != 2 || lessor.CodeOf(answers[0].Err) != lessor.CodeLeaseNotFound ||
			answers[1].Err != nil {
			t.Errorf("the batch is answered %+v, %v; want that the first lease is over and the second has ended",
				answers, err)
		}
		w.wantState(over.ID, lessor.Completed)
		if j := w.job(job.ID); j.LeaseID != nil {
			t.Errorf("the second job is %s, want without its lease", j.State)
		}
	})
}
