package dashboard

import (
	"strings"
	"testing"

	"lessor"
)

// asks ends an attempt with a question.
func (s *server) asks(g lessor.Grant, text string, choices ...string) {
	s.t.Helper()
	err := s.scheduler.Complete(s.t.Context(), tester, g.Lease.ID, lessor.Completion{
		WorkerID: &g.Lease.WorkerID, Status: new("waiting"), Question: &lessor.Asking{Text: &text, Choices: choices},
	})
	if err != nil {
		s.t.Fatalf("ask: %v", err)
	}
}

func TestQuestionIsAnsweredOnItsPage(t *testing.T) {
	s := start(t)
	job := s.submit(lessor.Submission{Type: new("deploy")})
	path := "/jobs/" + job.ID.String()
	s.asks(s.lease("w1", "deploy"), "<script>Deploy?</script>", "yes", `"no"`)
	v := s.as(s.admin)
	status, page := v.get(path)
	for _, want := range []string{
		"&lt;script&gt;Deploy?", `value="yes"`, "waiting_answer", path + "/answer", "Cancel",
	} {
		if status != 200 || !strings.Contains(page, want) {
			t.Errorf("the page of a waiting job (%d) does not show %s", status, want)
		}
	}
	if strings.Contains(page, path+"/retry") {
		t.Error("a waiting job can be retried")
	}
	if _, overview := v.get("/"); !strings.Contains(overview, "waits for an answer") {
		t.Error("the overview does not tell that a job waits")
	}
	if _, list := v.get("/jobs?state=waiting"); !strings.Contains(list, job.ID.String()) {
		t.Error("the list of waiting jobs does not have it")
	}
	question := s.job(job.ID).Question.ID.String()
	if status, _ := v.post(path+"/answer", "question", question, "answer", "perhaps", "back", path); status != 422 {
		t.Errorf("an answer that is no choice: %d, want 422", status)
	}
	v.post(path+"/answer", "question", question, "answer", "yes", "back", path)
	if got := s.job(job.ID); got.State != lessor.Queued || got.Question.Answer == nil || *got.Question.Answer != "yes" {
		t.Fatalf("after the answer the job is %s, %+v", got.State, got.Question)
	}
	v.post(path+"/message", "text", "hurry", "back", path)
	if got := s.job(job.ID); got.MessagesSent != 1 {
		t.Errorf("%d messages were sent", got.MessagesSent)
	}
	if _, page := v.get(path); !strings.Contains(page, "seen by its worker") {
		t.Error("the page does not tell of the message")
	}
}

func (s *server) job(id lessor.JobID) lessor.Job {
	s.t.Helper()
	job, err := s.scheduler.Job(s.t.Context(), tester, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return job
}
