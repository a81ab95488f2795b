package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// asks ends an attempt with a question.
func (w *world) asks(g lessor.Grant, text string, seconds int64) {
	w.t.Helper()
	if err := w.Complete(w.ctx, anybody, g.Lease.ID, asking(g, text, seconds)); err != nil {
		w.t.Fatalf("ask: %v", err)
	}
}

func asking(g lessor.Grant, text string, seconds int64) lessor.Completion {
	return lessor.Completion{
		WorkerID: &g.Lease.WorkerID, Status: new("waiting"), Checkpoint: []byte(`{"step":3}`),
		Question: &lessor.Asking{Text: &text}, ExpiresInS: &seconds,
	}
}

func (w *world) answer(id lessor.JobID, question lessor.QuestionID, text string) (lessor.Job, error) {
	return w.Answer(w.ctx, anybody, id, lessor.Answer{QuestionID: new(question.String()), Answer: &text})
}

func (w *world) wantReasons(id lessor.JobID, want ...string) {
	w.t.Helper()
	events, _, err := w.Events(w.ctx, anybody, id, 100, "")
	if err != nil || len(events) != len(want) {
		w.t.Fatalf("the record is %+v (%v), want %v", events, err, want)
	}
	for i, e := range events {
		if e.Reason != want[i] || e.Seq != i+1 {
			w.t.Errorf("entry %d is %+v, want %s", i+1, e, want[i])
		}
	}
}

func TestJobWaitsForItsAnswer(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		j := w.submit(func(s *lessor.Submission) { s.RequestedUnits = new(int64(95)) })
		behind := w.submit(nil)
		g := w.lease("w1", nil)
		w.asks(g, "Deploy?", 3600)
		if err := w.Complete(w.ctx, anybody, g.Lease.ID, asking(g, "Deploy?", 3600)); err != nil {
			t.Errorf("the same question again: %v", err)
		}
		w.wantCode(w.Complete(w.ctx, anybody, g.Lease.ID, asking(g, "Deploy now?", 3600)), lessor.CodeLeaseNotFound)
		waiting := w.wantState(j.ID, lessor.Waiting)
		if waiting.Attempt != 0 || waiting.LeaseID != nil || waiting.Question.ExpiresAt != now().Add(time.Hour) {
			t.Errorf("a waiting job is %+v, %+v", waiting, waiting.Question)
		}
		st, err := w.Status(w.ctx, anybody)
		if err != nil || st.Waiting != 1 || st.LeasedUnits != 0 {
			t.Errorf("status: %+v, %v", st, err)
		}
		w.noDrift()
		w.restart(time.Minute)
		w.wantState(j.ID, lessor.Waiting)

		job, err := w.answer(j.ID, waiting.Question.ID, "yes")
		if err != nil || job.State != lessor.Queued || *job.Question.Answer != "yes" {
			t.Fatalf("answered: %+v, %v", job, err)
		}
		if again, err := w.answer(j.ID, waiting.Question.ID, "yes"); err != nil || again.State != lessor.Queued {
			t.Errorf("the same answer again: %+v, %v", again, err)
		}
		_, err = w.answer(j.ID, waiting.Question.ID, "no")
		w.wantCode(err, lessor.CodeConflict)
		if st, err = w.Status(w.ctx, anybody); err != nil || st.Waiting != 0 {
			t.Errorf("status: %+v, %v", st, err)
		}
		w.noDrift()

		g = w.lease("w2", nil)
		if g.Job.ID != j.ID || g.Job.Attempt != 1 || *g.Job.Question.Answer != "yes" ||
			string(g.Job.Checkpoint) != `{"step":3}` {
			t.Fatalf("the next grant is %+v, %+v; %s waits behind", g.Job, g.Job.Question, behind.ID)
		}
		w.wantReasons(j.ID, "submitted", "granted", "asked", "answered", "granted")
		audit, _, err := w.Audit(w.ctx, lessor.AuditFilter{Limit: 10})
		if err != nil || len(audit) != 1 || audit[0].Action != "job.answered" || audit[0].Object != j.ID.String() {
			t.Errorf("the audit is %+v, %v", audit, err)
		}

		w.asks(g, "And the database?", 3600)
		_, err = w.answer(j.ID, waiting.Question.ID, "yes")
		w.wantCode(err, lessor.CodeConflict) // an old question, even with its own answer
	})
}

func TestUnansweredJobGoesOn(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		j := w.submit(nil)
		w.asks(w.lease("w1", nil), "Deploy?", 10)
		question := w.job(j.ID).Question.ID
		if why, err := w.Why(w.ctx, anybody, j.ID); err != nil || why.Reasons[0].Code != "waiting_answer" {
			t.Errorf("why: %+v, %v", why, err)
		}
		time.Sleep(9 * time.Second)
		w.wantState(j.ID, lessor.Waiting)
		time.Sleep(2 * time.Second)
		w.wantState(j.ID, lessor.Queued)
		_, err := w.answer(j.ID, question, "yes")
		w.wantCode(err, lessor.CodeConflict)
		g := w.lease("w2", nil)
		if g.Job.Question == nil || g.Job.Question.Answer != nil {
			t.Errorf("the grant has the question %+v, want one without an answer", g.Job.Question)
		}
		w.wantReasons(j.ID, "submitted", "granted", "asked", "unanswered", "granted")
		w.noDrift()
	})
}

func TestWaitingJobIsCancelled(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		j := w.submit(nil)
		g := w.lease("w1", nil)
		w.asks(g, "Deploy?", 10)
		if _, err := w.Cancel(w.ctx, anybody, j.ID, false); err != nil {
			t.Fatal(err)
		}
		done := w.wantState(j.ID, lessor.Cancelled)
		_, err := w.answer(j.ID, done.Question.ID, "yes")
		w.wantCode(err, lessor.CodeConflict)
		w.wantReasons(j.ID, "submitted", "granted", "asked", "cancelled")
		w.noDrift()
		// A question under a cancel request ends the job.
		j = w.submit(nil)
		g = w.lease("w1", nil)
		if _, err := w.Cancel(w.ctx, anybody, j.ID, false); err != nil {
			t.Fatal(err)
		}
		w.asks(g, "Deploy?", 10)
		w.wantState(j.ID, lessor.Cancelled)
		// Another tenant's caller learns nothing.
		other := lessor.TenantID{UUID: lessor.UUID{1}}
		_, err = w.Answer(w.ctx, scheduler.Caller{Tenant: &other}, j.ID,
			lessor.Answer{QuestionID: new("x"), Answer: new("yes")})
		w.wantCode(err, lessor.CodeJobNotFound)
	})
}

// beatSeeing sends a heartbeat that confirms messages, and returns the numbers of those in its answer.
func (w *world) beatSeeing(g lessor.Grant, seen int64) (numbers []int64) {
	w.t.Helper()
	a, err := w.Heartbeat(w.ctx, anybody, g.Lease.ID, lessor.Heartbeat{
		WorkerID: &g.Lease.WorkerID, MessagesSeen: &seen,
	})
	if err != nil {
		w.t.Fatalf("heartbeat of %s: %v", g.Lease.WorkerID, err)
	}
	for _, m := range a.Messages {
		if m.Text != fmt.Sprintf("number %d", m.Seq) || m.SentBy != "tester" {
			w.t.Errorf("message %+v", m)
		}
		numbers = append(numbers, m.Seq)
	}
	return numbers
}

func (w *world) send(id lessor.JobID, n int64) error {
	m, err := w.Message(w.ctx, anybody, id, lessor.MessageAsk{Text: new(fmt.Sprintf("number %d", n))})
	if err == nil && m.Seq != n {
		w.t.Errorf("message %d got the number %d", n, m.Seq)
	}
	return err
}

func (w *world) wantNumbers(got []int64, want ...int64) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Fatalf("the heartbeat is answered with messages %v, want %v", got, want)
	}
}

func TestMessagesComeUntilTheyAreSeen(t *testing.T) {
	cfg := config()
	cfg.MaxMessages = 4
	inWorld(t, cfg, func(t *testing.T, w *world) {
		j, other := w.submit(nil), w.submit(nil)
		for n := range int64(2) { // to a job that was never granted
			if err := w.send(j.ID, n+1); err != nil {
				t.Fatal(err)
			}
		}
		w.restart(time.Second)
		g := w.lease("w1", nil)
		w.wantNumbers(w.beatSeeing(g, 0), 1, 2)
		w.wantNumbers(w.beatSeeing(g, 1), 2)
		batch, err := w.HeartbeatAll(w.ctx, anybody, "w1", []string{g.Lease.ID.String()})
		if err != nil || len(batch[0].Beat.Messages) != 1 {
			t.Errorf("a batch is answered with %+v, %v", batch, err)
		}
		if err := w.send(j.ID, 3); err != nil {
			t.Fatal(err)
		}
		w.noDrift()
		w.mustComplete(g, "failed")
		time.Sleep(time.Second)
		g = w.lease("w2", nil)
		w.wantNumbers(w.beatSeeing(g, 0), 2, 3)
		for n := range int64(2) {
			if err := w.send(j.ID, n+4); err != nil {
				t.Fatal(err)
			}
		}
		w.wantCode(w.send(j.ID, 6), lessor.CodeConflict) // four wait
		if j := w.job(j.ID); j.MessagesSent != 5 || j.MessagesSeen != 1 {
			t.Errorf("%d messages sent, %d seen", j.MessagesSent, j.MessagesSeen)
		}
		w.wantNumbers(w.beatSeeing(g, 99)) // no more than there are
		w.wantNumbers(w.beatSeeing(w.lease("w3", nil), 0))
		if err := w.send(j.ID, 6); err != nil {
			t.Fatal(err)
		}
		w.noDrift()
		w.mustComplete(g, "completed")
		w.wantCode(w.send(j.ID, 7), lessor.CodeConflict)
		if j := w.job(j.ID); j.MessagesSent != 6 || j.MessagesSeen != 6 {
			t.Errorf("%d messages sent, %d seen", j.MessagesSent, j.MessagesSeen)
		}
		var left int
		if err := w.store.View(w.ctx, func(v scheduler.View) error {
			return v.EachMessaged(w.ctx, func(lessor.JobID, int64) error { left++; return nil })
		}); err != nil || left != 0 {
			t.Errorf("%d jobs have messages, %v; the one has ended, %s has none", left, err, other.ID)
		}
		stranger := scheduler.Caller{Tenant: &lessor.TenantID{UUID: lessor.UUID{1}}}
		_, err = w.Message(w.ctx, stranger, other.ID, lessor.MessageAsk{Text: new("hello")})
		w.wantCode(err, lessor.CodeJobNotFound)
	})
}

// TestMessageWithAKeyIsSentOnce repeats a message before and after it was seen, and after the end of its job.
func TestMessageWithAKeyIsSentOnce(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		j := w.submit(nil)
		g := w.lease("w1", nil)
		send := func(key, text string) (lessor.Message, error) {
			return w.Message(w.ctx, anybody, j.ID, lessor.MessageAsk{Text: &text, Key: &key})
		}
		first, err := send("k", "number 1")
		if err != nil || first.Seq != 1 {
			t.Fatal(first, err)
		}
		again := func() {
			t.Helper()
			if m, err := send("k", "number 1"); err != nil || m != first {
				t.Fatalf("the same message again is %+v, %v; want %+v", m, err, first)
			}
		}
		again()
		_, err = send("k", "number 2")
		w.wantCode(err, lessor.CodeConflict)
		_, err = send("", "number 2")
		w.wantCode(err, lessor.CodeInvalidValue)
		if m, err := send("l", "number 2"); err != nil || m.Seq != 2 {
			t.Fatal(m, err)
		}
		w.wantNumbers(w.beatSeeing(g, 0), 1, 2)
		w.wantNumbers(w.beatSeeing(g, 1), 2)
		again()
		w.restart(time.Second)
		w.wantNumbers(w.beatSeeing(g, 1), 2)
		w.wantNumbers(w.beatSeeing(g, 2))
		again()
		w.noDrift()
		w.mustComplete(g, "completed")
		again()
		_, err = send("m", "number 3")
		w.wantCode(err, lessor.CodeConflict)
		if j := w.job(j.ID); j.MessagesSent != 2 || j.MessagesSeen != 2 {
			t.Errorf("%d messages sent, %d seen", j.MessagesSent, j.MessagesSeen)
		}
	})
}

// TestMessagesSentOnTwoNodesArriveOnceAndInOrder sends messages on two nodes while workers come and go on both. Each
// confirms what it has seen, and none of them sees a message twice or out of order.
func TestMessagesSentOnTwoNodesArriveOnceAndInOrder(t *testing.T) {
	const each = 150
	ws := nodes(t, 2, config(), nil)
	j := ws[0].submit(nil)
	var wg sync.WaitGroup
	for _, w := range ws {
		wg.Go(func() {
			for range each {
				if _, err := w.Message(w.ctx, anybody, j.ID, lessor.MessageAsk{Text: new("hello")}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	seen := int64(0)
	for deadline := time.Now().Add(time.Minute); seen < 2*each && time.Now().Before(deadline); {
		g, _ := ws[rand.IntN(2)].ask("w1", nil)
		if g == nil {
			continue
		}
		for range rand.IntN(12) {
			a, err := ws[rand.IntN(2)].Heartbeat(t.Context(), anybody, g.Lease.ID,
				lessor.Heartbeat{WorkerID: new("w1"), MessagesSeen: &seen})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range a.Messages {
				if m.Seq != seen+1 {
					t.Fatalf("message %d follows number %d", m.Seq, seen)
				}
				seen++
			}
		}
		if err := ws[0].Release(t.Context(), anybody, g.Lease.ID, lessor.Release{
			WorkerID: new("w1"), Reason: new(lessor.ReleaseUndelivered),
		}); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if seen != 2*each {
		t.Errorf("%d of %d messages were seen", seen, 2*each)
	}
	for _, w := range ws {
		w.noDrift()
	}
}
