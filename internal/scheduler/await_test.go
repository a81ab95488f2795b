package scheduler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
)

// awaitEnd waits for the end of a job, at most 20 s.
func (w *world) awaitEnd(id lessor.JobID) lessor.Job {
	w.t.Helper()
	job, err := w.AwaitJob(w.ctx, anybody, id, new(int64(20_000)))
	if err != nil {
		w.t.Fatalf("wait for the end: %v", err)
	}
	return job
}

// TestWaitIsAnsweredWhenTheJobEnds ends a job in every possible way, three seconds after the wait began. The job passes
// through other states first.
func TestWaitIsAnsweredWhenTheJobEnds(t *testing.T) {
	ends := map[string]struct {
		attempts int64
		end      func(w *world, g lessor.Grant) error
		want     lessor.State
	}{
		"completed": {2, func(w *world, g lessor.Grant) error { return w.complete(g, "completed") }, lessor.Completed},
		"failed":    {1, func(w *world, g lessor.Grant) error { return w.complete(g, "failed") }, lessor.Failed},
		"cancelled": {2, func(w *world, g lessor.Grant) error {
			_, err := w.Cancel(w.ctx, anybody, g.Job.ID, true)
			return err
		}, lessor.Cancelled},
		"cancelled in the queue": {2, func(w *world, g lessor.Grant) error {
			if err := w.Release(w.ctx, anybody, g.Lease.ID, lessor.Release{WorkerID: &g.Lease.WorkerID}); err != nil {
				return err
			}
			_, err := w.Cancel(w.ctx, anybody, g.Job.ID, false)
			return err
		}, lessor.Cancelled},
	}
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			inWorld(t, config(), func(t *testing.T, w *world) {
				w.submit(func(s *lessor.Submission) { s.MaxAttempts = &c.attempts })
				g := w.lease("worker-1", nil)
				if c.attempts > 1 { // a failure with an attempt left is no end
					w.mustComplete(g, "failed")
					time.Sleep(time.Second)
					g = w.lease("worker-1", nil)
				}
				start := time.Now()
				time.AfterFunc(3*time.Second, func() {
					if err := c.end(w, g); err != nil {
						t.Error(err)
					}
				})
				job := w.awaitEnd(g.Job.ID)
				if took := time.Since(start); job.State != c.want || took > 3*time.Second+10*time.Millisecond {
					t.Errorf("answered %s after %v, want %s within milliseconds of 3 s", job.State, took, c.want)
				}
				again := time.Now()
				if w.awaitEnd(g.Job.ID); time.Since(again) > time.Millisecond {
					t.Error("a wait for a job that has ended was held")
				}
			})
		})
	}
}

func TestWaitForTheEndIsBounded(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		start := time.Now()
		if got := w.awaitEnd(job.ID); got.State != lessor.Queued || time.Since(start) != 20*time.Second {
			t.Errorf("answered %s after %v, want the job as it is after 20 s", got.State, time.Since(start))
		}
		_, err := w.AwaitJob(w.ctx, anybody, job.ID, new(int64(30_001)))
		w.wantCode(err, lessor.CodeInvalidValue)
		_, err = w.AwaitJob(w.ctx, workerOf(tenantOf(1), 1), job.ID, new(int64(10_000)))
		w.wantCode(err, lessor.CodeJobNotFound)
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := w.AwaitJob(ctx, anybody, job.ID, new(int64(10_000))); err == nil {
			t.Error("a call whose caller has left was answered")
		}
		synctest.Wait()
	})
}

func TestWaitSeesTheEndOnAnotherNode(t *testing.T) {
	ws := nodes(t, 2, config(), nil)
	a, b := ws[0], ws[1]
	job := a.submit(nil)
	g := a.lease("worker-1", nil)
	seen := make(chan time.Time, 1)
	go func() {
		if got := b.awaitEnd(job.ID); got.State != lessor.Completed {
			t.Errorf("the other node answered %s, want completed", got.State)
		}
		seen <- time.Now()
	}()
	time.Sleep(300 * time.Millisecond) // time for the call to wait; one that comes later only returns sooner
	start := time.Now()
	a.mustComplete(g, "completed")
	if took := (<-seen).Sub(start); took > 2*time.Second {
		t.Errorf("seen after %v, want within 2 s", took)
	} else {
		t.Logf("seen after %v", took)
	}
}
