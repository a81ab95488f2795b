package worker_test

import (
	"fmt"
	"testing"
	"time"

	"lessor"
	"lessor/lessortest"
	"lessor/worker"
	"lessor/worker/mailboxtest"
)

func TestServerMailbox(t *testing.T) {
	servers := map[testing.TB]*lessortest.Server{} // one a bubble
	mailboxes := 0
	mailboxtest.Run(t, mailboxtest.Config{
		Open: func(t testing.TB) worker.Mailbox {
			if servers[t] == nil {
				servers[t] = lessortest.Start(t)
			}
			mailboxes++
			return openServerMailbox(t, servers[t], fmt.Sprintf("mailbox-%d", mailboxes))
		},
		Late:          2 * time.Second, // P6
		MaxBody:       worker.ServerMaxBody,
		RepliesAnyway: true,
	})
}

func openServerMailbox(t testing.TB, s *lessortest.Server, jobType string) *worker.ServerMailbox {
	t.Helper()
	box, err := worker.NewServerMailbox(worker.ServerMailboxConfig{Client: s.Client(), Type: jobType})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func TestReplyIsTheResultOfTheJob(t *testing.T) {
	inShop(t, func(t *testing.T, s shop) {
		box := openServerMailbox(t, s.Server, "letter")
		id := s.Submit("letter", map[string]int{"n": 1}) // not by Send: the payload is the body
		got, err := box.Receive(t.Context(), 1, time.Minute, 0)
		if err != nil || len(got) != 1 || string(got[0].Body()) != `{"n":1}` {
			t.Fatalf("received %v, %v; want the job's payload", got, err)
		}
		if err := got[0].Reply(t.Context(), []byte("well")); err != nil {
			t.Fatal(err)
		}
		if err := got[0].Acknowledge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if job := s.WaitFor(id, lessor.Completed); string(job.Result) != `{"text":"well"}` {
			t.Errorf("the result is %s, want the reply", job.Result)
		}
	})
}
