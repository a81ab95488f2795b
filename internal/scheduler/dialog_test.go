package scheduler_test

import (
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
