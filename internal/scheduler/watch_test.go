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
	"lessor/internal/rules"
)

func TestWatchedLeaseOutlivesItsTTL(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		g := w.lease("worker-1", func(r *lessor.LeaseRequest) { r.WorkspaceID = new("here") })
		until := map[lessor.LeaseID]lessor.Instant{g.Lease.ID: now().Add(5 * time.Minute)}
		if err := w.Watch(w.ctx, until); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Minute)
		w.wantState(g.Job.ID, lessor.Leased)
		held, err := w.WorkspaceLeases(w.ctx, "here")
		if err != nil || len(held) != 1 || held[0].Held.ID != g.Lease.ID || held[0].Over {
			t.Fatalf("leases of the workspace: %+v, %v", held, err)
		}
		if err := w.Reattach(w.ctx, g.Lease.ID); err != nil {
			t.Fatal(err)
		}
		if j := w.wantState(g.Job.ID, lessor.Running); !j.Reattached {
			t.Error("it is not shown as reattached")
		}
		time.Sleep(59 * time.Second)
		w.mustBeat(g)
		w.mustComplete(g, "completed")
		record, _, err := w.Events(w.ctx, anybody, g.Job.ID, 10, "")
		if err != nil || len(record) != 5 || record[3].Reason != "reattached" || record[4].Seq != 5 {
			t.Errorf("record: %+v, %v", record, err)
		}
		all, err := w.Watched(w.ctx, []lessor.JobID{g.Job.ID, {}})
		if v := all[g.Job.ID]; err != nil || len(all) != 1 || !v.Final || v.State != lessor.Completed ||
			v.Fence != g.Lease.Fence {
			t.Errorf("watched: %+v, %v", all, err)
		}
	})
}

// TestShorterWatchEndsInTime shortens a watch after the lease was planned to be looked at when the first one ends.
func TestShorterWatchEndsInTime(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		for _, long := range []time.Duration{5 * time.Minute, 10 * time.Second} {
			if err := w.Watch(w.ctx, map[lessor.LeaseID]lessor.Instant{g.Lease.ID: now().Add(long)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(65 * time.Second)
		}
		w.wantState(g.Job.ID, lessor.Queued)
	})
}

func TestReattachedLeaseStillEndsWithoutBeats(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		if err := w.Reattach(w.ctx, g.Lease.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(62 * time.Second)
		w.wantState(g.Job.ID, lessor.Queued)
	})
}

func TestAttemptOfADeadCommandIsRetried(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		if err := w.EndDead(w.ctx, anybody, g.Lease.ID, "Heartbeat stopped"); err != nil {
			t.Fatal(err)
		}
		j := w.wantState(g.Job.ID, lessor.Failed)
		if j.Error == nil || *j.Error != "Heartbeat stopped" || j.RetryAt == 0 {
			t.Errorf("job: %+v", j)
		}
		w.wantCode(w.EndDead(w.ctx, anybody, g.Lease.ID, "again"), lessor.CodeLeaseNotFound)
	})
}

func TestExitRecordCompletesAJob(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.submit(nil)
		g := w.lease("worker-1", nil)
		d := lessor.Completion{WorkerID: new("worker-1"), Status: new("completed"), Result: json.RawMessage(`{"n":1}`)}
		if err := w.Conclude(w.ctx, anybody, g.Lease.ID, d); err != nil {
			t.Fatal(err)
		}
		if j := w.wantState(g.Job.ID, lessor.Completed); string(j.Result) != `{"n":1}` {
			t.Errorf("result: %s", j.Result)
		}
	})
}

func TestResumedJobGoesOnFromItsCheckpoint(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		old := w.submit(func(s *lessor.Submission) {
			s.Payload, s.MaxAttempts, s.IdempotencyKey = json.RawMessage(`{"a":1}`), new(int64(1)), new("once")
		})
		g := w.lease("worker-1", nil)
		if _, err := w.resume(old.ID, true); w.wantCode(err, lessor.CodeConflict) == nil {
			t.Error("a running job was resumed")
		}
		if _, err := w.Heartbeat(w.ctx, anybody, g.Lease.ID, lessor.Heartbeat{
			WorkerID: new("worker-1"), Checkpoint: json.RawMessage(`{"page":7}`),
		}); err != nil {
			t.Fatal(err)
		}
		w.mustComplete(g, "failed")
		id, err := w.resume(old.ID, true)
		if err != nil {
			t.Fatal(err)
		}
		g = w.lease("worker-1", nil)
		if g.Job.ID != id || string(g.Job.Payload) != `{"a":1}` || string(g.Job.Checkpoint) != `{"page":7}` {
			t.Errorf("resumed as %s with payload %s and checkpoint %s", g.Job.ID, g.Job.Payload, g.Job.Checkpoint)
		}
		w.wantReason(id, 1, "resumed_from "+old.ID.String())
		w.wantReason(old.ID, 4, "resumed_as "+id.String())
		if _, err := w.resume(old.ID, true); lessor.CodeOf(err) != lessor.CodeConflict ||
			!strings.Contains(err.Error(), id.String()) {
			t.Errorf("a second resume: %v, want a conflict that names %s", err, id)
		}
		w.mustComplete(g, "completed")
		if _, err := w.Retry(w.ctx, anybody, old.ID); err != nil {
			t.Fatal(err)
		}
		g = w.lease("worker-1", nil)
		w.mustComplete(g, "failed")
		last, err := w.resume(old.ID, false)
		if err != nil {
			t.Fatalf("a job that failed once more after its resume: %v", err)
		}
		if g := w.lease("worker-1", nil); g.Job.ID != last || string(g.Job.Checkpoint) != `null` {
			t.Errorf("resumed from the start as %s with checkpoint %s", g.Job.ID, g.Job.Checkpoint)
		}
		if _, err := w.resume(lessor.JobID{}, true); w.wantCode(err, lessor.CodeJobNotFound) == nil {
			t.Error("an unknown job was resumed")
		}
	})
}

// resume makes a new job from an old one, as the monitor does.
func (w *world) resume(id lessor.JobID, fromCheckpoint bool) (lessor.JobID, error) {
	next, err := w.Resumable(w.ctx, anybody, id)
	if err != nil {
		return lessor.JobID{}, err
	}
	return next.ID, w.Resume(w.ctx, anybody, id, next.ID, fromCheckpoint)
}

// wantReason fails unless the entry of a job's record at this place has the reason.
func (w *world) wantReason(id lessor.JobID, at int, reason string) {
	w.t.Helper()
	record, _, err := w.Events(w.ctx, anybody, id, 100, "")
	if err != nil || len(record) <= at || record[at].Reason != reason {
		w.t.Errorf("record: %+v, %v; want %q at %d", record, err, reason, at)
	}
}

// What followers of the stream get is what the records say, with the same numbers.
func TestStreamOfReattachedAndResumedJobsEqualsTheirRecords(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		stream, err := w.Subscribe(w.ctx, anybody, 0)
		if err != nil {
			t.Fatal(err)
		}
		old := w.submit(nil)
		g := w.lease("worker-1", nil)
		for range 3 { // each reattachment is an entry
			if err := w.Reattach(w.ctx, g.Lease.ID); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.EndDead(w.ctx, anybody, g.Lease.ID, rules.DeathHeartbeatStopped); err != nil {
			t.Fatal(err)
		}
		id, err := w.resume(old.ID, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Retry(w.ctx, anybody, old.ID); err != nil {
			t.Fatal(err)
		}
		w.mustComplete(w.lease("worker-1", nil), "completed")
		synctest.Wait()
		events := map[lessor.JobID][]lessor.Event{}
		for _, e := range stream.Take(math.MaxInt) {
			events[e.Event.JobID] = append(events[e.Event.JobID], e.Event.Event)
		}
		for _, id := range []lessor.JobID{old.ID, id} {
			record, _, err := w.Events(w.ctx, anybody, id, 100, "")
			if d := cmp.Diff(record, events[id]); err != nil || d != "" {
				t.Errorf("the record and the stream differ (-record +stream): %v\n%s", err, d)
			}
		}
		w.wantReason(old.ID, 5, "reattached")
		w.noDrift()
	})
}

func TestOutcomeOfAnAttemptIsRememberedByItsFence(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		job := w.submit(func(s *lessor.Submission) { s.MaxAttempts = new(int64(2)) })
		first := w.lease("worker-1", nil)
		want := func(fence int64, want rules.Outcome) {
			t.Helper()
			if got, err := w.Outcome(w.ctx, job.ID, fence); err != nil || got != want {
				t.Errorf("attempt with fence %d ended %q (%v), want %q", fence, got, err, want)
			}
		}
		want(first.Lease.Fence, "")
		time.Sleep(65 * time.Second)
		want(first.Lease.Fence, rules.OutcomeExpired)
		second := w.lease("worker-1", nil)
		w.mustComplete(second, "failed")
		want(first.Lease.Fence, rules.OutcomeExpired)
		want(second.Lease.Fence, rules.OutcomeFailed)
		all, err := w.Watched(w.ctx, []lessor.JobID{job.ID})
		if v := all[job.ID]; err != nil || !v.Final || v.EndedAt != now() {
			t.Errorf("watched: %+v, %v; want it ended now", all, err)
		}
	})
}

func TestFoundDeadGoesByTheReasonNotByTheErrorText(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		var ids []lessor.JobID
		for _, attempts := range []int64{1, 3} { // failed for good, and waiting for a retry
			for _, dead := range []bool{true, false} {
				ids = append(ids, w.submit(func(s *lessor.Submission) { s.MaxAttempts = &attempts }).ID)
				g := w.lease("worker-1", nil)
				var err error
				if dead {
					err = w.EndDead(w.ctx, anybody, g.Lease.ID, rules.DeathHeartbeatStopped)
				} else {
					err = w.Complete(w.ctx, anybody, g.Lease.ID, lessor.Completion{
						WorkerID: new("worker-1"), Status: new("failed"),
						Error: new(string(rules.DeathHeartbeatStopped)),
					})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		all, err := w.Histories(w.ctx, ids)
		if err != nil || len(all) != 4 {
			t.Fatal(all, err)
		}
		for i, id := range ids {
			if dead := all[id].FoundDead(); dead != (i%2 == 0) {
				t.Errorf("job %d of %v found dead: %v", i, ids, dead)
			}
		}
	})
}

func TestDeadJobIsResumedInsteadOfItsRetry(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		old := w.submit(nil)
		g := w.lease("worker-1", nil)
		w.mustComplete(g, "failed")
		if _, err := w.resume(old.ID, true); w.wantCode(err, lessor.CodeConflict) == nil {
			t.Error("a job that waits for an ordinary retry was resumed")
		}
		time.Sleep(time.Minute)
		g = w.lease("worker-1", nil)
		if err := w.EndDead(w.ctx, anybody, g.Lease.ID, "Heartbeat stopped"); err != nil {
			t.Fatal(err)
		}
		id, err := w.resume(old.ID, true)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		w.wantState(old.ID, lessor.Cancelled)
		if g := w.lease("worker-1", nil); g.Job.ID != id {
			t.Errorf("granted %s, want the new job %s", g.Job.ID, id)
		}
		if _, d := w.ask("worker-2", nil); d == nil {
			t.Error("the old job runs beside the new one")
		}
		w.noDrift()
	})
}
