package scheduler_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

func TestReleaseGivesTheAttemptBack(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		for n := range 20 {
			g := w.lease("worker-1", nil)
			if g.Job.Attempt != 1 || g.Job.Interruptions != n {
				t.Fatalf("attempt %d after %d interruptions, want 1 after %d", g.Job.Attempt, g.Job.Interruptions, n)
			}
			if err := w.Release(w.ctx, anybody, g.Lease.ID, lessor.Release{WorkerID: new("worker-1")}); err != nil {
				t.Fatal(err)
			}
			w.wantState(job.ID, lessor.Queued)
		}
		g := w.lease("worker-1", nil)
		if err := w.Release(w.ctx, anybody, g.Lease.ID, lessor.Release{WorkerID: new("worker-1")}); err != nil {
			t.Fatal(err)
		}
		if j := w.wantState(job.ID, lessor.Failed); j.Error == nil || *j.Error != "too_many_interruptions" {
			t.Errorf("error is %v, want too_many_interruptions", j.Error)
		}
	})
}

func TestReleaseWithDelayWaits(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		g := w.lease("worker-1", nil)
		err := w.Release(w.ctx, anybody, g.Lease.ID, lessor.Release{
			WorkerID: new("worker-1"), DelayMS: new(int64(5000)), Checkpoint: json.RawMessage(`{"at":3}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		w.wantState(job.ID, lessor.Queued)
		if _, d := w.ask("worker-1", nil); d == nil {
			t.Fatal("granted before the delay was over")
		}
		time.Sleep(5 * time.Second)
		g = w.lease("worker-2", nil)
		if string(g.Job.Checkpoint) != `{"at":3}` {
			t.Errorf("the next attempt got checkpoint %s, want the last one", g.Job.Checkpoint)
		}
	})
}

func TestRevokeFailsTheAttempt(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		g := w.lease("worker-1", nil)
		if err := w.Revoke(w.ctx, anybody, g.Lease.ID, "node is being replaced"); err != nil {
			t.Fatal(err)
		}
		j := w.wantState(job.ID, lessor.Failed)
		if j.RetryAt.IsZero() || j.Error == nil || *j.Error != "node is being replaced" {
			t.Errorf("retry_at %v, error %v; want a retry and the reason", j.RetryAt, j.Error)
		}
		_, err := w.beat(g)
		if e := w.wantCode(err, lessor.CodeLeaseNotFound); e.EndedReason != "revoked" {
			t.Errorf("ended_reason is %q, want revoked", e.EndedReason)
		}
		err = w.Revoke(w.ctx, anybody, lessor.LeaseID{UUID: lessor.UUID{1}}, "")
		if e := w.wantCode(err, lessor.CodeLeaseNotFound); strings.Contains(e.Detail, "stop this work") {
			t.Errorf("the operator gets %q, which is for workers", e.Detail)
		}
	})
}

func TestCancelEndsAWaitingJobAndAsksAWorkerToStop(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		cancel := func(id lessor.JobID, force bool) lessor.Job {
			t.Helper()
			j, err := w.Cancel(w.ctx, anybody, id, force)
			if err != nil {
				t.Fatalf("cancel: %v", err)
			}
			return j
		}
		queued := w.submit(nil)
		if j := cancel(queued.ID, false); j.State != lessor.Cancelled {
			t.Errorf("a queued job is %s after cancel, want cancelled at once", j.State)
		}
		if _, d := w.ask("worker-1", nil); d == nil {
			t.Fatal("a cancelled job was granted")
		}

		held := w.submit(nil)
		g := w.lease("worker-1", nil)
		w.wantCode(w.complete(g, "cancelled"), lessor.CodeConflict)
		if j := cancel(held.ID, false); j.State != lessor.Leased || !j.CancelRequested {
			t.Errorf("a held job is %s, cancel_requested %v; want leased, true", j.State, j.CancelRequested)
		}
		if a := w.mustBeat(g); !a.CancelRequested {
			t.Error("the heartbeat's answer does not say that the job is to be cancelled")
		}
		w.mustComplete(g, "failed")
		w.wantState(held.ID, lessor.Cancelled)

		done := w.submit(nil)
		g = w.lease("worker-1", nil)
		cancel(done.ID, false)
		w.mustComplete(g, "completed")
		w.wantState(done.ID, lessor.Completed)
		_, err := w.Cancel(w.ctx, anybody, done.ID, false)
		w.wantCode(err, lessor.CodeConflict)

		forced := w.submit(nil)
		g = w.lease("worker-1", nil)
		if j := cancel(forced.ID, true); j.State != lessor.Cancelled {
			t.Errorf("a forced cancel left the job %s", j.State)
		}
		_, err = w.beat(g)
		w.wantCode(err, lessor.CodeLeaseNotFound)
		w.noDrift()
	})
}

func TestRetryByAnOperator(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(func(s *lessor.Submission) { s.MaxAttempts = new(int64(1)) })
		_, err := w.Retry(w.ctx, anybody, job.ID)
		w.wantCode(err, lessor.CodeConflict)
		w.mustComplete(w.lease("worker-1", nil), "failed")
		j, err := w.Retry(w.ctx, anybody, job.ID)
		if err != nil || j.State != lessor.Queued || j.MaxAttempts != 2 {
			t.Fatalf(
				"retried job is %s with max_attempts %d (%v), want queued with one more", j.State, j.MaxAttempts, err,
			)
		}
		w.mustComplete(w.lease("worker-1", nil), "completed")
		_, err = w.Retry(w.ctx, anybody, job.ID)
		w.wantCode(err, lessor.CodeConflict)

		waiting := w.submit(func(s *lessor.Submission) { s.Backoff = &lessor.BackoffAsk{FirstMS: new(int64(60_000))} })
		w.mustComplete(w.lease("worker-1", nil), "failed")
		w.wantState(waiting.ID, lessor.Failed)
		if j, err = w.Retry(w.ctx, anybody, waiting.ID); err != nil || j.State != lessor.Queued {
			t.Fatalf("a waiting job is %s after retry (%v), want queued now", j.State, err)
		}
		w.lease("worker-1", nil)

		timed := w.submit(func(s *lessor.Submission) { s.RunAt = new(now().Add(time.Minute).String()) })
		if _, err := w.Cancel(w.ctx, anybody, timed.ID, false); err != nil {
			t.Fatal(err)
		}
		if j, err = w.Retry(w.ctx, anybody, timed.ID); err != nil || j.State != lessor.Queued ||
			j.RunAt != timed.RunAt {
			t.Fatalf("a cancelled job with a time is %s for %s after retry (%v)", j.State, j.RunAt, err)
		}
		if g, _ := w.ask("worker-2", nil); g != nil {
			t.Fatal("it runs before its time")
		}
		time.Sleep(time.Minute)
		w.lease("worker-2", nil)
		w.noDrift()
	})
}

// plainEvent is an event without its ids and times.
type plainEvent struct {
	Seq     int
	To      lessor.State
	Actor   string
	Reason  string
	Attempt int
}

func TestRecordHasTheWholeLife(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		stream, err := w.Subscribe(t.Context(), anybody, 0)
		if err != nil {
			t.Fatal(err)
		}
		job := w.submit(nil)
		g := w.lease("worker-1", nil)
		w.mustBeat(g)
		w.mustComplete(g, "failed")
		time.Sleep(time.Second)
		g = w.lease("worker-2", nil)
		if _, err := w.Cancel(w.ctx, anybody, job.ID, false); err != nil {
			t.Fatal(err)
		}
		w.mustBeat(g)
		w.mustComplete(g, "cancelled")
		if _, err := w.Retry(w.ctx, anybody, job.ID); err != nil {
			t.Fatal(err)
		}
		events, next, err := w.Events(w.ctx, anybody, job.ID, 100, "")
		if err != nil || next != "" {
			t.Fatalf("events: %v, cursor %q", err, next)
		}
		var got []plainEvent
		for _, e := range events {
			got = append(got, plainEvent{e.Seq, e.To, e.Actor, e.Reason, e.Attempt})
		}
		want := []plainEvent{
			{1, lessor.Queued, "tester", "submitted", 0},
			{2, lessor.Leased, "tester/worker-1", "granted", 1},
			{3, lessor.Running, "tester/worker-1", "first_heartbeat", 1},
			{4, lessor.Failed, "tester/worker-1", "failed", 1},
			{5, lessor.Queued, "scheduler", "retry_due", 1},
			{6, lessor.Leased, "tester/worker-2", "granted", 2},
			{7, lessor.Leased, "tester", "cancel_requested", 2},
			{8, lessor.Running, "tester/worker-2", "first_heartbeat", 2},
			{9, lessor.Cancelled, "tester/worker-2", "cancelled", 2},
			{10, lessor.Queued, "tester", "retried", 2},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
		synctest.Wait()
		var streamed []lessor.Event
		for _, e := range stream.Take(math.MaxInt) {
			streamed = append(streamed, e.Event.Event)
		}
		if diff := cmp.Diff(events, streamed); diff != "" {
			t.Errorf("the stream differs from the record (-record +stream):\n%s", diff)
		}
		page, next, err := w.Events(w.ctx, anybody, job.ID, 4, "")
		if err != nil || len(page) != 4 || next == "" {
			t.Fatalf("first page: %d events, cursor %q, %v", len(page), next, err)
		}
		page, next, err = w.Events(w.ctx, anybody, job.ID, 100, next)
		if err != nil || len(page) != 6 || page[0].Seq != 5 || next != "" {
			t.Errorf("second page: %d events from %d, cursor %q, %v", len(page), page[0].Seq, next, err)
		}
	})
}

func TestProgressAndResultAreShown(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(nil)
		g := w.lease("worker-1", nil)
		_, err := w.Heartbeat(w.ctx, anybody, g.Lease.ID, lessor.Heartbeat{
			WorkerID: new("worker-1"), Progress: new(0.25), Message: new("a quarter"),
			Checkpoint: json.RawMessage(`[1,2]`),
		})
		if err != nil {
			t.Fatal(err)
		}
		j := w.job(job.ID)
		if *j.Progress != 0.25 || *j.Message != "a quarter" || string(j.Checkpoint) != `[1,2]` {
			t.Errorf("job shows progress %v, message %v, checkpoint %s", *j.Progress, *j.Message, j.Checkpoint)
		}
		err = w.Release(w.ctx, anybody, g.Lease.ID, lessor.Release{
			WorkerID: new("worker-1"), Progress: new(0.5), Message: new("half"),
		})
		if j = w.job(job.ID); err != nil || *j.Progress != 0.5 || *j.Message != "half" ||
			string(j.Checkpoint) != `[1,2]` {
			t.Errorf("a release with a report: progress %v, message %v, checkpoint %s, %v",
				*j.Progress, *j.Message, j.Checkpoint, err)
		}
		g = w.lease("worker-1", nil)
		err = w.Complete(w.ctx, anybody, g.Lease.ID, lessor.Completion{
			WorkerID: new("worker-1"), Status: new("completed"), Result: json.RawMessage(`{"n":1.50}`),
			Progress: new(0.9),
		})
		if j = w.job(job.ID); err != nil || string(j.Result) != `{"n":1.50}` || *j.Progress != 0.9 ||
			*j.Message != "half" {
			t.Errorf("result %s, progress %v, message %v, %v; want them as sent", j.Result, *j.Progress, *j.Message,
				err)
		}
	})
}
