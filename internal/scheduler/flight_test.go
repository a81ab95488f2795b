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

// late is a store whose commits land when the test says so.
type late struct {
	scheduler.Store
	takes   time.Duration // to send
	mu      sync.Mutex
	held    bool            // commits do not land by themselves
	fail    error           // of the next commit
	unknown bool            // the answer to the next commit is lost
	onWay   []chan struct{} // oldest first
	failing int             // of those
}

func (*late) Sends() bool { return true }

func (l *late) Send(ctx context.Context, _ bool, fn func(scheduler.Tx) error) (wait func() error, err error) {
	time.Sleep(l.takes)
	l.mu.Lock()
	defer l.mu.Unlock()
	fault := l.fail
	if l.fail = nil; l.failing > 0 {
		fault = scheduler.ErrAgain // built on one that fails
	}
	failed := l.Update(ctx, func(tx scheduler.Tx) error {
		if err = fn(tx); err != nil {
			return err
		}
		return fault
	})
	switch {
	case err != nil && l.failing > 0:
		return nil, fault
	case err != nil:
		return nil, err
	}
	if l.unknown {
		l.unknown, failed = false, scheduler.ErrUnknownOutcome
	}
	landed := make(chan struct{})
	if l.onWay = append(l.onWay, landed); fault != nil {
		l.failing++
	}
	if !l.held {
		l.landOldest()
	}
	return func() error {
		<-landed
		l.mu.Lock()
		defer l.mu.Unlock()
		if fault != nil {
			l.failing--
		}
		return failed
	}, nil
}

func (l *late) landOldest() {
	close(l.onWay[0])
	l.onWay = l.onWay[1:]
}

// land lets the oldest commit land.
func (l *late) land() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.landOldest()
}

// hold keeps commits from landing by themselves. The next one fails, or its answer is lost.
func (l *late) hold(fail error, unknown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.fail, l.unknown = true, fail, unknown
}

// landAll lets everything land, now and from now on.
func (l *late) landAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.held = false; len(l.onWay) > 0; {
		l.landOldest()
	}
}

// inLateWorld runs test over a store whose commits are on their way for as long as it likes.
func inLateWorld(t *testing.T, test func(t *testing.T, w *world, l *late)) {
	t.Helper()
	l := &late{}
	inWrappedWorld(t, func(s scheduler.Store) scheduler.Store { l.Store = s; return l },
		func(t *testing.T, w *world) { test(t, w, l) })
}

// submitting and asking call, and tell when they are answered.
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

// TestAnsweredWhenTheirCommitHasLanded: a request that found nothing gets the job of the commit behind its own, and is
// told so when that one has landed, not before.
func TestAnsweredWhenTheirCommitHasLanded(t *testing.T) {
	inLateWorld(t, func(t *testing.T, w *world, l *late) {
		l.hold(nil, false)
		asked := w.asking("w1")
		submitted := w.submitting()
		for landed := range 2 {
			if len(asked) != 0 || len(submitted) != 0 {
				t.Errorf("after %d of 2 commits: asked %d, submitted %d answers, want none", landed, len(asked), len(
					submitted,
				))
			}
			l.land()
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

// TestAnsweredWhileTheNextOneIsDecided: who was answered can call again meanwhile, and is in time for the one after
// that.
func TestAnsweredWhileTheNextOneIsDecided(t *testing.T) {
	inLateWorld(t, func(t *testing.T, w *world, l *late) {
		l.hold(nil, false)
		first := w.submitting()
		l.takes = time.Second
		second := w.submitting()
		l.land()
		synctest.Wait()
		if len(first) != 1 || len(l.onWay) != 0 {
			t.Errorf("%d answers, %d more commits on their way, want an answer while the next is decided", len(
				first,
			), len(l.onWay))
		}
		l.takes = 0
		l.landAll()
		<-second
	})
}

// TestNoMoreThanTwoOnTheirWay: the calls that come meanwhile wait together.
func TestNoMoreThanTwoOnTheirWay(t *testing.T) {
	inLateWorld(t, func(t *testing.T, w *world, l *late) {
		l.hold(nil, false)
		var answers []<-chan lessor.Job
		for range 10 {
			answers = append(answers, w.submitting())
		}
		if len(l.onWay) != 2 {
			t.Errorf("%d commits are on their way, want 2", len(l.onWay))
		}
		for range 3 {
			l.land()
			synctest.Wait()
		}
		for i, a := range answers {
			if len(a) != 1 {
				t.Errorf("call %d has no answer after three commits", i)
			}
		}
	})
}

// TestWaitsForThoseWhomTheLastOneAnswered: behind a commit on its way the next transaction begins when as many calls
// wait as the last one that landed answered, or when that on its way has landed.
func TestWaitsForThoseWhomTheLastOneAnswered(t *testing.T) {
	inLateWorld(t, func(t *testing.T, w *world, l *late) {
		l.hold(nil, false)
		onWay := func(want int, when string) {
			t.Helper()
			if len(l.onWay) != want {
				t.Errorf("%s: %d commits are on their way, want %d", when, len(l.onWay), want)
			}
		}
		submit := func(n int) {
			for range n {
				w.submitting()
			}
		}
		land := func() {
			l.land()
			synctest.Wait()
		}
		submit(5) // two go, each alone, and three wait
		land()
		onWay(2, "nobody was answered but one")
		land()
		land()
		onWay(0, "all have landed")
		submit(1)
		submit(2)
		onWay(1, "three were answered, two are back")
		submit(1)
		onWay(2, "three are back")
		land()
		submit(1)
		land()
		onWay(1, "what waits goes when all have landed")
		l.landAll()
	})
}

// TestFailedCommitIsRepeatedWithThoseBehindIt: whatever was on its way is answered once, and happens once.
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
			inLateWorld(t, func(t *testing.T, w *world, l *late) {
				submitted, asked := order(w)
				l.landAll()
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

// TestAnswerToTheOneBeforeIsLost: what was sent behind a commit, and is known to have landed, is answered.
func TestAnswerToTheOneBeforeIsLost(t *testing.T) {
	inLateWorld(t, func(t *testing.T, w *world, l *late) {
		l.hold(nil, true)
		first := make(chan error, 1)
		go func() {
			_, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic")})
			first <- err
		}()
		synctest.Wait()
		second := w.submitting()
		l.landAll()
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

// TestBusyNodeOfSeveralLingers: after a transaction with many calls it waits, a quarter of the time that it took, for
// as many to come back, and no longer once they are there.
func TestBusyNodeOfSeveralLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &late{takes: 40 * time.Millisecond}
		w := &world{t: t, ctx: t.Context(), path: t.TempDir() + "/lessor.db", cfg: config(), crowded: true}
		w.wrap = func(s scheduler.Store) scheduler.Store { l.Store = s; return l }
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

// holding has the next commit fail, and nothing land by itself.
func (w *world) holding() *world {
	w.store.(*late).hold(scheduler.ErrAgain, false)
	return w
}
