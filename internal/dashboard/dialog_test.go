package dashboard

import (
	"fmt"
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

// TestChoiceIsSentAsItIs presses the button of choices that a browser changes when it sends them in a form.
func TestChoiceIsSentAsItIs(t *testing.T) {
	s := start(t)
	b := s.tab(t, s.admin)
	for i, choice := range []string{"first\nsecond", "a\rb", "a\r\nb", " <b>&+%41\" "} {
		typ := fmt.Sprintf("deploy-%d", i)
		job := s.submit(lessor.Submission{Type: &typ})
		path := "/jobs/" + job.ID.String()
		s.asks(s.lease("w1", typ), "Deploy?", choice, "no")
		b.open(path)
		b.js(`document.querySelector("form[action='` + path + `/answer'] button").click() || true`)
		b.wait(`document.body.innerText.includes("Answered the question") ||
			document.body.innerText.includes("not allowed")`)
		if got := s.job(job.ID).Question.Answer; got == nil || *got != choice {
			t.Errorf("the answer %q is refused or changed:\n%s", choice, b.text(`document.body.innerText`))
		}
	}
}

// TestLongMessageOfAForm sends a message of 8 KiB in which each byte takes three in the form, and a longer one.
func TestLongMessageOfAForm(t *testing.T) {
	s := start(t)
	job := s.submit(lessor.Submission{Type: new("deploy")})
	path := "/jobs/" + job.ID.String()
	v := s.as(s.admin)
	v.post(path+"/message", "text", strings.Repeat("ж", 4096), "back", path)
	if got := s.job(job.ID); got.MessagesSent != 1 {
		t.Errorf("%d messages were sent, want 1", got.MessagesSent)
	}
	status, page := v.post(path+"/message", "text", strings.Repeat("€", 8192), "back", path)
	if status != 422 {
		t.Errorf("a message that is too long: %d, want 422", status)
	}
	has(t, page, "must be 1 to 8192 bytes long, not 24576", "This was not sent")
}

func (s *server) job(id lessor.JobID) lessor.Job {
	s.t.Helper()
	job, err := s.scheduler.Job(s.t.Context(), tester, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return job
}
