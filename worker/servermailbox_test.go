package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
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
	withServer(t, func(t *testing.T, s testServer) {
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

// TestJSONStaysJSON sends bodies and returns them as the reply: those that are JSON are not put into a string, neither
// in the payload nor in the result, and all bodies arrive as they were sent.
func TestJSONStaysJSON(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		letters, replies := openServerMailbox(t, s.Server, "letter"), openServerMailbox(t, s.Server, "reply")
		receive := func(box worker.Mailbox, body string) worker.Message {
			t.Helper()
			got, err := box.Receive(t.Context(), 1, time.Minute, 0)
			if err != nil || len(got) != 1 || string(got[0].Body()) != body {
				t.Fatalf("received %v, %v; want %s", got, err, body)
			}
			return got[0]
		}
		for _, tt := range []struct{ body, payload, result string }{
			{`{"n":1.50,"a":[null]}`, `{"json":{"n":1.50,"a":[null]},"reply_to":"reply"}`, `{"n":1.50,"a":[null]}`},
			{`null`, `{"json":null,"reply_to":"reply"}`, `null`},
			{`{"n": 1}`, `{"text":"{\"n\": 1}","reply_to":"reply"}`, `{"text":"{\"n\": 1}"}`}, // keeps the space
			{`{"n":1,"n":2}`, `{"text":"{\"n\":1,\"n\":2}","reply_to":"reply"}`, `{"text":"{\"n\":1,\"n\":2}"}`},
			{"\x00\xff", `{"bytes":"AP8=","reply_to":"reply"}`, `{"bytes":"AP8="}`},
		} {
			text, err := letters.Send(t.Context(), []byte(tt.body), replies)
			if err != nil {
				t.Fatal(err)
			}
			m := receive(letters, tt.body)
			if err := errors.Join(m.Reply(t.Context(), m.Body()), m.Acknowledge(t.Context())); err != nil {
				t.Fatalf("reply with %s: %v", tt.body, err)
			}
			id, err := lessor.ParseJobID(text)
			if err != nil {
				t.Fatal(err)
			}
			if job := s.WaitFor(id, lessor.Completed); string(job.Payload) != tt.payload ||
				string(job.Result) != tt.result {
				t.Errorf("%s is stored as %s with result %s", tt.body, job.Payload, job.Result)
			}
			if err := receive(replies, tt.body).Acknowledge(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestMessageIsFinishedOnceAServerAnswers has a server that is replaced, and then answers that get lost.
func TestMessageIsFinishedOnceAServerAnswers(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		lost := map[string]int{"jobs": 10, "complete": 10}
		r := &route{RoundTripper: s.Transport(), lose: func(verb string) bool {
			lost[verb]--
			return lost[verb] >= 0
		}}
		letters, replies := openServerMailbox(t, s.Server, "letter"), openServerMailbox(t, s.Server, "reply")
		if _, err := letters.Send(t.Context(), []byte("a"), replies); err != nil {
			t.Fatal(err)
		}
		box, err := worker.NewServerMailbox(worker.ServerMailboxConfig{Client: over(t, r), Type: "letter"})
		if err != nil {
			t.Fatal(err)
		}
		m := receive(t, box, 1, time.Minute, 0)[0]
		back := make(chan struct{})
		go func() {
			defer close(back)
			s.Restart(10 * time.Second)
		}()
		synctest.Wait()
		if err := errors.Join(m.Reply(t.Context(), []byte("b")), m.Acknowledge(t.Context())); err != nil {
			t.Errorf("reply and acknowledge: %v", err)
		}
		<-back
		if err := m.Acknowledge(t.Context()); !errors.Is(err, worker.ErrReceiptExpired) {
			t.Errorf("a second end: %v, want an expired receipt", err)
		}
		if n := len(receive(t, replies, worker.MaxBatch, time.Minute, 0)); n != 1 {
			t.Errorf("%d replies arrived, want one", n)
		}
		if lost["jobs"] > 0 || lost["complete"] > 0 {
			t.Errorf("answers that were not lost: %v", lost)
		}
	})
}

// TestMessageIsNotFinishedForEver has no server for longer than a message waits for one.
func TestMessageIsNotFinishedForEver(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		box := openServerMailbox(t, s.Server, "letter")
		s.Submit("letter", nil)
		m := receive(t, box, 1, 5*time.Minute, 0)[0]
		back := make(chan struct{})
		go func() {
			defer close(back)
			s.Restart(5 * time.Minute)
		}()
		synctest.Wait()
		start := time.Now()
		err := m.Acknowledge(t.Context())
		if took := time.Since(start); err == nil || took < 50*time.Second || took > 70*time.Second {
			t.Errorf("acknowledged after %s with %v, want an error after a minute", took, err)
		}
		<-back
		if err := m.Acknowledge(t.Context()); err != nil {
			t.Errorf("acknowledge when the server is back: %v", err)
		}
	})
}

// TestMessagesWhoseAnswerWasLostAreReceivedByTheNextCall has a server that grants three messages and dies before its
// answer arrives. The next call wants one of them.
func TestMessagesWhoseAnswerWasLostAreReceivedByTheNextCall(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		lost := 0
		r := &route{RoundTripper: s.Transport(), lose: func(verb string) bool {
			if verb == "request" {
				lost++
			}
			return lost > 0 && lost <= 5 // a call is made three times
		}}
		box, err := worker.NewServerMailbox(worker.ServerMailboxConfig{Client: over(t, r), Type: "letter"})
		if err != nil {
			t.Fatal(err)
		}
		s.submitAll("letter", 3)
		if got, err := box.Receive(t.Context(), worker.MaxBatch, 5*time.Minute, 0); err == nil {
			t.Fatalf("received %d messages although all answers were lost", len(got))
		}
		s.Advance(4 * time.Minute)
		first := receive(t, box, 1, 5*time.Minute, 0)
		s.Advance(2 * time.Minute)
		rest := receive(t, box, worker.MaxBatch, 5*time.Minute, 0)
		if len(first) != 1 || len(rest) != 2 {
			t.Fatalf("received %d messages and then %d, want 1 and 2", len(first), len(rest))
		}
		for _, m := range append(first, rest...) {
			if err := m.Acknowledge(t.Context()); err != nil || m.Deliveries() != 1 {
				t.Errorf("delivery %d is acknowledged with %v, want delivery 1 with nil", m.Deliveries(), err)
			}
		}
	})
}

// TestMessageGrantedToAStoppedCallIsReceivedByTheNext has a call that ends while no server answers.
func TestMessageGrantedToAStoppedCallIsReceivedByTheNext(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		ctx, stop := context.WithCancel(t.Context())
		away := true
		r := &route{RoundTripper: s.Transport(), lose: func(string) bool {
			stop()
			return away
		}}
		box, err := worker.NewServerMailbox(worker.ServerMailboxConfig{Client: over(t, r), Type: "letter"})
		if err != nil {
			t.Fatal(err)
		}
		s.Submit("letter", nil)
		if _, err := box.Receive(ctx, 1, 5*time.Minute, 0); !errors.Is(err, context.Canceled) {
			t.Fatalf("a call that was stopped ended with %v", err)
		}
		away = false
		if got := receive(t, box, 1, 5*time.Minute, 0); len(got) != 1 || got[0].Deliveries() != 1 {
			t.Errorf("received %d messages, want the one that the stopped call was granted, as delivery 1", len(got))
		}
	})
}

// TestDeadLetterCostsItsBatchNothing receives a message that was delivered too often together with a new one, and no
// server acknowledges that it is dead.
func TestDeadLetterCostsItsBatchNothing(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		r := &route{RoundTripper: s.Transport(), lose: func(verb string) bool { return verb == "complete" }}
		box, err := worker.NewServerMailbox(worker.ServerMailboxConfig{Client: over(t, r), Type: "letter"})
		if err != nil {
			t.Fatal(err)
		}
		m := sendAndReceive(t, box, time.Second)
		for m.Deliveries() < worker.MaxDeliveries {
			if m.Deliveries()%2 == 1 { // the server counts both kinds separately, and takes neither for too many
				err = m.Nack(t.Context(), 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			m = receive(t, box, 1, time.Second, worker.MaxWait)[0]
		}
		s.Advance(3 * time.Second)
		if _, err := box.Send(t.Context(), []byte("new"), nil); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		got := receive(t, box, worker.MaxBatch, time.Minute, 0)
		if took := time.Since(start); len(got) != 1 || string(got[0].Body()) != "new" || took > 6*time.Second {
			t.Errorf("received %d messages after %s, want the new one within 6 s", len(got), took)
		}
		if r.calls("complete") == 0 {
			t.Error("the old message was not received")
		}
	})
}
