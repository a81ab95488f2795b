package scheduler_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// pendingStore is a store whose commits become durable when the test says so.
type pendingStore struct {
	scheduler.Store
	takes   time.Duration // how long Send takes
	mu      sync.Mutex
	held    bool            // commits stay pending until the test ends them
	fail    error           // of the next commit
	unknown bool            // the answer to the next commit is lost
	pending []chan struct{} // oldest first
	failing int             // how many of the pending commits fail
	last    scheduler.Footing
}

func (p *pendingStore) Send(
	ctx context.Context, on scheduler.Footing, fn func(scheduler.Tx) error,
) (wait func() error, err error) {
	time.Sleep(p.takes)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = on
	fault := p.fail
	if p.fail = nil; p.failing > 0 {
		fault = scheduler.ErrAgain // it is built on a commit that fails
	}
	failed := p.Update(ctx, func(tx scheduler.Tx) error {
		if err = fn(tx); err != nil {
			return err
		}
		return fault
	})
	switch {
	case err != nil && p.failing > 0:
		return nil, fault
	case err != nil:
		return nil, err
	}
	if p.unknown {
		p.unknown, failed = false, scheduler.ErrUnknownOutcome
	}
	durable := make(chan struct{})
	if p.pending = append(p.pending, durable); fault != nil {
		p.failing++
	}
	if !p.held {
		p.finish()
	}
	return func() error {
		<-durable
		p.mu.Lock()
		defer p.mu.Unlock()
		if fault != nil {
			p.failing--
		}
		return failed
	}, nil
}

// finish ends the oldest pending commit. The caller holds the mutex.
func (p *pendingStore) finish() {
	close(p.pending[0])
	p.pending = p.pending[1:]
}

// finishOldest ends the oldest pending commit.
func (p *pendingStore) finishOldest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
}

// hold keeps commits pending until the test ends them. The next one fails, or its answer is lost.
func (p *pendingStore) hold(fail error, unknown bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.fail, p.unknown = true, fail, unknown
}

// finishAll ends all pending commits, and later ones at once.
func (p *pendingStore) finishAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held = false; len(p.pending) > 0; {
		p.finish()
	}
}

// withPendingCommits runs test over a store whose commits stay pending for as long as the test likes.
func withPendingCommits(t *testing.T, test func(t *testing.T, w *world, commits *pendingStore)) {
	t.Helper()
	commits := &pendingStore{}
	inWrappedWorld(t, func(s scheduler.Store) scheduler.Store { commits.Store = s; return commits },
		func(t *testing.T, w *world) { test(t, w, commits) })
}

// submitting and asking start a call and return the channel on which its answer arrives.
func (w *world) submitting() <-chan lessor.Job {
	answer := make(chan lessor.Job, 1)
	go func() { answer <- w.submit(nil) }()
	synctest.Wait()
	return answer
}

func (w *world) asking(worker string) <-chan *lessor.Grant {
	answer := make(chan *lessor.Grant, 1)
	go func() {
		g, _ := w.ask(worker, func(r *lessor.LeaseRequest) { r.WaitMS = new(int64(10_000)) })
		answer <- g
	}()
	synctest.Wait()
	return answer
}

// TestStoreLearnsThatACommitIsBehindAnother: a transaction that builds on a commit whose end the loop does not know
// says so. The store then fails it with that commit, whoever else knows of the end.
func TestStoreLearnsThatACommitIsBehindAnother(t *testing.T) {
	withPendingCommits(t, func(t *testing.T, w *world, commits *pendingStore) {
		commits.hold(nil, false)
		for i, want := range []scheduler.Footing{scheduler.Sole, scheduler.Behind} {
			w.submitting()
			if commits.last != want {
				t.Errorf("commit %d was sent with footing %d, want %d", i+1, commits.last, want)
			}
		}
		commits.finishAll()
		synctest.Wait()
		if w.submitting(); commits.last != scheduler.Sole {
			t.Errorf("a commit behind none was sent with footing %d, want %d", commits.last, scheduler.Sole)
		}
	})
}

// TestCallIsAnsweredAfterItsCommit: a parked request gets the job of the commit behind its own. It is answered when
// that commit is durable, not before.
func TestCallIsAnsweredAfterItsCommit(t *testing.T) {
	withPendingCommits(t, func(t *testing.T, w *world, commits *pendingStore) {
		commits.hold(nil, false)
		asked := w.asking("w1")
		submitted := w.submitting()
		for ended := range 2 {
			if len(asked) != 0 || len(submitted) != 0 {
				t.Errorf("after %d of 2 commits: asked %d, submitted %d answers, want none", ended, len(asked), len(
					submitted,
				))
			}
			commits.finishOldest()
			synctest.Wait()
		}
		if len(asked) != 1 || len(submitted) != 1 {
			t.Fatalf("asked %d, submitted %d answers, want both", len(asked), len(submitted))
		}
		if job, grant := <-submitted, <-asked; grant == nil || grant.Job.ID != job.ID {
			t.Errorf("granted %v, want job %s", grant, job.ID)
		}
	})
}

// TestCallIsAnsweredDuringTheNextPass: a caller that is answered meanwhile can call again in time for the pass after
// that.
func TestCallIsAnsweredDuringTheNextPass(t *testing.T) {
	withPendingCommits(t, func(t *testing.T, w *world, commits *pendingStore) {
		commits.hold(nil, false)
		first := w.submitting()
		commits.takes = time.Second
		second := w.submitting()
		commits.finishOldest()
		synctest.Wait()
		if len(first) != 1 || len(commits.pending) != 0 {
			t.Errorf("%d answers, %d more pending commits, want an answer during the next pass",
				len(first), len(commits.pending))
		}
		commits.takes = 0
		commits.finishAll()
		<-second
	})
}

// TestAtMostTwoCommitsArePending: the calls that arrive meanwhile wait together.
func TestAtMostTwoCommitsArePending(t *testing.T) {
	withPendingCommits(t, func(t *testing.T, w *world, commits *pendingStore) {
		commits.hold(nil, false)
		var answers []<-chan lessor.Job
		for range 10 {
			answers = append(answers, w.submitting())
		}
		if len(commits.pending) != 2 {
			t.Errorf("%d commits are pending, want 2", len(commits.pending))
		}
		for range 3 {
			commits.finishOldest()
			synctest.Wait()
		}
		for i, a := range answers {
			if len(a) != 1 {
				t.Errorf("call %d has no answer after three commits", i)
			}
		}
	})
}

// TestPassWaitsForAsManyCallsAsWereAnswered: behind a pending commit the next pass begins when as many calls wait as
// the last durable commit answered, or when the pending commit is durable.
func TestPassWaitsForAsManyCallsAsWereAnswered(t *testing.T) {
	withPendingCommits(t, func(t *testing.T, w *world, commits *pendingStore) {
		commits.hold(nil, false)
		wantPending := func(want int, when string) {
			t.Helper()
			if len(commits.pending) != want {
				t.Errorf("%s: %d commits are pending, want %d", when, len(commits.pending), want)
			}
		}
		submit := func(n int) {
			for range n {
				w.submitting()
			}
		}
		finish := func() {
			commits.finishOldest()
			synctest.Wait()
		}
		submit(5) // two go, each alone, and three wait
		finish()
		wantPending(2, "one call was answered")
		finish()
		finish()
		wantPending(0, "all commits are durable")
		submit(1)
		submit(2)
		wantPending(1, "three were answered, two called again")
		submit(1)
		wantPending(2, "three called again")
		finish()
		submit(1)
		finish()
		wantPending(1, "the calls that wait go when all commits are durable")
		commits.finishAll()
	})
}

// TestFailedCommitIsRepeatedWithThoseBehindIt: every call of a pending commit takes effect once and is answered once.
func TestFailedCommitIsRepeatedWithThoseBehindIt(t *testing.T) {
	for name, order := range map[string]func(w *world) (<-chan lessor.Job, <-chan *lessor.Grant){
		"a parked request in the first": func(w *world) (<-chan lessor.Job, <-chan *lessor.Grant) {
			asked := w.asking("w1")
			return w.holding().submitting(), asked
		},
		"a request in the first": func(w *world) (<-chan lessor.Job, <-chan *lessor.Grant) {
			asked := w.holding().asking("w1")
			return w.submitting(), asked
		},
		"a request in the second": func(w *world) (<-chan lessor.Job, <-chan *lessor.Grant) {
			submitted := w.holding().submitting()
			return submitted, w.asking("w1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			withPendingCommits(t, func(t *testing.T, w *world, commits *pendingStore) {
				submitted, asked := order(w)
				commits.finishAll()
				time.Sleep(time.Second)
				if len(submitted) != 1 || len(asked) != 1 {
					t.Fatalf("submitted %d, asked %d answers, want both", len(submitted), len(asked))
				}
				job, grant := <-submitted, <-asked
				if grant == nil || grant.Job.ID != job.ID || grant.Job.Attempt != 1 {
					t.Fatalf("granted %+v, want the first attempt of job %s", grant, job.ID)
				}
				w.mustComplete(*grant, "completed")
				if again, denial := w.ask("w2", nil); denial == nil {
					t.Errorf("granted %+v, want one job in all", again)
				}
			})
		})
	}
}

// TestLostAnswerOfACommitIsNotThatOfTheNext: the calls of the commit behind it, which is durable, are answered.
func TestLostAnswerOfACommitIsNotThatOfTheNext(t *testing.T) {
	withPendingCommits(t, func(t *testing.T, w *world, commits *pendingStore) {
		commits.hold(nil, true)
		first := make(chan error, 1)
		go func() {
			_, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")})
			first <- err
		}()
		synctest.Wait()
		second := w.submitting()
		commits.finishAll()
		synctest.Wait()
		if len(first) != 1 || len(second) != 1 {
			t.Fatalf("the first has %d answers, the second %d, want one each", len(first), len(second))
		}
		if e := w.wantCode(<-first, lessor.CodeUnavailable); !e.OutcomeUnknown {
			t.Errorf("the first: %+v, want that its outcome is unknown", e)
		}
		w.wantState((<-second).ID, lessor.Queued)
	})
}

// TestCallBehindAFailedCommitIsAnswered: a node notices while a commit is pending that it is not alone. Its next batch
// waits for that commit, and is refused with it.
func TestCallBehindAFailedCommitIsAnswered(t *testing.T) {
	withPendingCommits(t, func(t *testing.T, w *world, commits *pendingStore) {
		commits.hold(scheduler.ErrFull, false)
		answers := make(chan error, 2)
		submit := func() {
			_, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")})
			answers <- err
		}
		go submit()
		synctest.Wait()
		w.ActAsOneOfSeveral()
		go submit()
		synctest.Wait()
		commits.finishAll()
		time.Sleep(time.Second)
		if len(answers) != 2 {
			t.Fatalf("%d calls were answered, want 2", len(answers))
		}
		for range 2 {
			w.wantCode(<-answers, lessor.CodeUnavailable)
		}
	})
}

// TestBusyNodeOfSeveralLingers: after a transaction with many calls the node waits for as many again, at most for a
// quarter of the time that the transaction took.
func TestBusyNodeOfSeveralLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commits := &pendingStore{takes: 40 * time.Millisecond}
		w := &world{t: t, ctx: t.Context(), path: t.TempDir() + "/lessor.db", cfg: config(), shared: true}
		w.wrap = func(s scheduler.Store) scheduler.Store { commits.Store = s; return commits }
		w.start()
		defer func() { w.halt() }()
		submitAll := func(n int) time.Duration {
			start := time.Now()
			var all sync.WaitGroup
			for range n {
				all.Go(func() { w.submit(nil) })
			}
			all.Wait()
			return time.Since(start)
		}
		busy := func() { // a transaction with one call, and then one with a hundred
			one := w.submitting()
			submitAll(100)
			<-one
		}
		busy()
		if took := submitAll(1); took != 50*time.Millisecond {
			t.Errorf("one call took %v, want a quarter more than a transaction", took)
		}
		if took := submitAll(1); took != 40*time.Millisecond {
			t.Errorf("one call behind one took %v, want a transaction", took)
		}
		busy()
		if took := submitAll(100); took != 40*time.Millisecond {
			t.Errorf("as many as before took %v, want a transaction", took)
		}
	})
}

// TestGrantOfAClientThatHasGoneIsGivenBack: the client hangs up while its grant is committed.
func TestGrantOfAClientThatHasGoneIsGivenBack(t *testing.T) {
	withPendingCommits(t, func(t *testing.T, w *world, commits *pendingStore) {
		job := w.submit(nil)
		commits.hold(nil, false)
		ctx, hangUp := context.WithCancel(w.ctx)
		go func() { _, _, _ = w.Request(ctx, anybody, lessor.LeaseRequest{WorkerID: new("worker")}) }()
		synctest.Wait()
		hangUp()
		synctest.Wait()
		commits.finishAll()
		time.Sleep(10 * time.Millisecond)
		if got := w.wantState(job.ID, lessor.Queued); got.Attempt != 0 || got.Interruptions != 0 {
			t.Errorf("the job has %d attempts and %d interruptions, want none", got.Attempt, got.Interruptions)
		}
		if g := w.lease("another", nil); g.Job.Attempt != 1 || g.Lease.Fence < 2 {
			t.Errorf("the next lease is attempt %d with fence %d", g.Job.Attempt, g.Lease.Fence)
		}
	})
}

// holding has the next commit fail, and keeps commits pending until the test ends them.
func (w *world) holding() *world {
	w.store.(*pendingStore).hold(scheduler.ErrAgain, false)
	return w
}
