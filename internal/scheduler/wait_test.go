package scheduler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
)

func waiting(ms int64) func(*lessor.LeaseRequest) {
	return func(r *lessor.LeaseRequest) { r.WaitMS = &ms }
}

func TestWaitingRequestWakesAtASubmission(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		start := time.Now()
		time.AfterFunc(7*time.Second, func() { w.submit(nil) })
		w.lease("worker-1", waiting(30_000))
		if took := time.Since(start); took > 7*time.Second+10*time.Millisecond {
			t.Errorf("granted after %v, want within milliseconds of the submission at 7 s", took)
		}
	})
}

func TestWaitingRequestsAreServedInOrderAndOnlyOnce(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		order := make(chan string, 3)
		for _, worker := range []string{"first", "second", "third"} {
			go func() {
				if g, _ := w.ask(worker, waiting(10_000)); g != nil {
					order <- worker
				}
			}()
			synctest.Wait()
		}
		w.submit(nil)
		if got := <-order; got != "first" {
			t.Errorf("%s was served, want the one that waited longest", got)
		}
		w.submit(nil)
		if got := <-order; got != "second" {
			t.Errorf("%s was served, want second", got)
		}
		time.Sleep(11 * time.Second) // the third has waited in vain
		select {
		case got := <-order:
			t.Errorf("%s was served without a job", got)
		default:
		}
	})
}

func TestWaitingRequestEndsWithTheLastDenial(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		start := time.Now()
		_, d := w.ask("worker-1", waiting(2000))
		if d == nil || d.Code != lessor.NoEligibleJob {
			t.Errorf("got %+v, want the denial %s", d, lessor.NoEligibleJob)
		}
		if took := time.Since(start); took < 2*time.Second || took > 2*time.Second+50*time.Millisecond {
			t.Errorf("answered after %v, want wait_ms = 2 s", took)
		}
	})
}

func TestDrainEndsWaitingAtOnce(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		start := time.Now()
		time.AfterFunc(time.Second, func() {
			if _, err := w.SetDraining(w.ctx, anybody, true); err != nil {
				t.Error(err)
			}
		})
		_, d := w.ask("worker-1", waiting(30_000))
		if d == nil || d.Code != lessor.Draining || time.Since(start) > 1100*time.Millisecond {
			t.Errorf("got %+v after %v, want draining at once", d, time.Since(start))
		}
		synctest.Wait()
		w.restart(time.Second)
		if _, d := w.ask("worker-1", nil); d == nil || d.Code != lessor.Draining {
			t.Errorf("after a restart: %+v, want still draining", d)
		}
	})
}

func TestWaitingRequestWakesWhenARetryIsDue(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(func(s *lessor.Submission) {
			s.RunAt = new(time.Now().Add(5 * time.Second).UTC().Format(time.RFC3339Nano))
		})
		start := time.Now()
		w.lease("worker-1", waiting(30_000))
		if took := time.Since(start); took < 5*time.Second || took > 5100*time.Millisecond {
			t.Errorf("granted after %v, want at run_at = 5 s", took)
		}
	})
}

func TestRequestOfAClientThatIsGoneIsNotGranted(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(w.ctx)
		time.AfterFunc(time.Second, cancel)
		_, _, err := w.Request(ctx, anybody, lessor.LeaseRequest{WorkerID: new("gone"), WaitMS: new(int64(30_000))})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want the context's error", err)
		}
		job := w.submit(nil)
		synctest.Wait()
		w.wantState(job.ID, lessor.Queued)
		if g := w.lease("worker-1", nil); g.Job.Attempt != 1 || g.Job.Interruptions != 0 {
			t.Errorf("attempt %d after %d interruptions, want 1 after 0", g.Job.Attempt, g.Job.Interruptions)
		}
	})
}

func TestIdempotencyKeyIsOneJob(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		sub := func(payload string) lessor.Submission {
			return lessor.Submission{Type: new("generic"), IdempotencyKey: new("k"), Payload: []byte(payload)}
		}
		first, err := w.Submit(w.ctx, anybody, sub(`{"a":1,"b":2}`))
		if err != nil || first.Existing {
			t.Fatalf("first: %+v, %v", first, err)
		}
		again, err := w.Submit(w.ctx, anybody, sub(`{ "b": 2, "a": 1 }`))
		if err != nil || !again.Existing || again.Job.ID != first.Job.ID {
			t.Errorf("the same body again: existing %v, job %v, %v; want the first job %v", again.Existing,
				again.Job.ID, err, first.Job.ID)
		}
		_, err = w.Submit(w.ctx, anybody, sub(`{"a":2}`))
		w.wantCode(err, lessor.CodeConflict)
		if n := w.depth(); n != 1 {
			t.Errorf("%d jobs are queued under one key", n)
		}
		other := sub(`{"a":2}`)
		other.TenantID = new("11111111-1111-4111-8111-111111111111")
		if r, err := w.Submit(w.ctx, anybody, other); err != nil || r.Existing {
			t.Errorf("another tenant's key: existing %v, %v; want a new job", r.Existing, err)
		}
	})
}

func TestRepeatedDelayKeepsTheFirstTime(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		sub := lessor.Submission{Type: new("generic"), IdempotencyKey: new("k"), DelayMS: new(int64(600_000))}
		first, err := w.Submit(w.ctx, anybody, sub)
		if err != nil || first.Job.RunAt.Sub(first.Job.CreatedAt) != 10*time.Minute {
			t.Fatalf("created %v, runs at %v (%v), want 10 min later", first.Job.CreatedAt, first.Job.RunAt, err)
		}
		time.Sleep(3 * time.Minute)
		again, err := w.Submit(w.ctx, anybody, sub)
		if err != nil || !again.Existing || again.Job.RunAt != first.Job.RunAt {
			t.Errorf("again: existing %v, runs at %v, %v; want the first time %v",
				again.Existing, again.Job.RunAt, err, first.Job.RunAt)
		}
	})
}

func TestSameKeySubmittedAtOnceIsOneJob(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		const n = 64
		ids := make(chan lessor.JobID, n)
		for range n {
			go func() {
				r, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("generic"), IdempotencyKey: new("k")})
				if err != nil {
					t.Error(err)
				}
				ids <- r.Job.ID
			}()
		}
		first := <-ids
		for range n - 1 {
			if id := <-ids; id != first {
				t.Errorf("one key gave jobs %v and %v", first, id)
			}
		}
		w.noDrift()
	})
}

func TestBatchIsStoredWholeOrNotAtAll(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		good, bad := lessor.Submission{Type: new("generic")}, lessor.Submission{
			Type: new("generic"), Priority: new("urgent"),
		}
		_, err := w.SubmitBatch(w.ctx, anybody, []lessor.Submission{good, good, bad})
		e := w.wantCode(err, lessor.CodeInvalidValue)
		if len(e.Fields) != 1 || e.Fields[0].Field != "jobs[2].priority" {
			t.Errorf("fields %+v, want jobs[2].priority", e.Fields)
		}
		keyed := lessor.Submission{Type: new("generic"), IdempotencyKey: new("k")}
		if _, err := w.Submit(w.ctx, anybody, keyed); err != nil {
			t.Fatal(err)
		}
		keyed.Priority = new("high")
		_, err = w.SubmitBatch(w.ctx, anybody, []lessor.Submission{good, keyed})
		w.wantCode(err, lessor.CodeConflict)
		jobs, _, err := w.Jobs(w.ctx, anybody, lessor.JobFilter{Limit: 100})
		if err != nil || len(jobs) != 1 {
			t.Errorf("%d jobs are stored (%v), want only the single submission", len(jobs), err)
		}
	})
}
