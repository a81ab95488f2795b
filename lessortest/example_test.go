package lessortest_test

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
)

// What a user writes: a payload and a handler.

type mail struct{ To string }

// post sends mails by a provider that can be down.
type post struct {
	down bool
	sent []string
}

func (p *post) send(_ context.Context, job *worker.Job[mail]) (any, error) {
	if p.down {
		return nil, errors.New("provider is down")
	}
	p.sent = append(p.sent, job.Payload.To)
	return map[string]string{"sent_to": job.Payload.To}, nil
}

// And how it is tested.

func TestMailIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lessortest.Start(t)
		p := &post{}
		runPost(t, s, p)
		job := s.WaitFor(s.Submit("mail", mail{To: "ann"}), lessor.Completed)
		if string(job.Result) != `{"sent_to":"ann"}` {
			t.Errorf("the result is %s", job.Result)
		}
	})
}

func TestMailIsSentOnceTheProviderIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lessortest.Start(t)
		p := &post{down: true}
		runPost(t, s, p)
		id := s.Submit("mail", mail{To: "ann"})
		s.WaitFor(id, lessor.Failed)
		p.down = false
		if job := s.WaitFor(id, lessor.Completed); job.Attempt < 2 || len(p.sent) != 1 {
			t.Errorf("sent %d times by attempt %d, want once, by a retry", len(p.sent), job.Attempt)
		}
	})
}

// A report that takes an hour is taken over by another worker when its own dies, and goes on from its checkpoint.
func TestReportGoesOnElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lessortest.Start(t)
		for _, id := range []string{"first", "second"} {
			w, err := worker.New(worker.Config{Client: s.Client(), ID: id})
			if err != nil {
				t.Fatal(err)
			}
			worker.Handle(w, "report", report)
			s.Run(w)
		}
		id := s.Submit("report", nil)
		lease := s.WaitForLease(id)
		s.Advance(25*time.Minute + time.Second)
		s.KillWorker(lease.WorkerID)
		start := time.Now()
		job := s.WaitFor(id, lessor.Completed)
		if took := time.Since(start); took > 37*time.Minute || job.Attempt != 2 {
			t.Errorf("took %s more in attempt %d, want the remaining 35 minutes, and the lease's, in attempt 2",
				took, job.Attempt)
		}
	})
}

func report(ctx context.Context, job *worker.Job[struct{}]) (any, error) {
	page := 0
	if _, err := job.LoadCheckpoint(&page); err != nil {
		return nil, err
	}
	for ; page < 180; page++ {
		select {
		case <-time.After(20 * time.Second): // write a page
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if err := job.SaveCheckpoint(ctx, page+1); err != nil {
			return nil, err
		}
	}
	return page, nil
}

func runPost(t *testing.T, s *lessortest.Server, p *post) {
	t.Helper()
	w, err := worker.New(worker.Config{Client: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	worker.Handle(w, "mail", p.send)
	s.Run(w)
}

// The body of a test. The tests in this file run in fake time too.
func Example() {
	t := newExampleT() // the argument of your test
	defer t.end()
	s := lessortest.Start(t)
	w, err := worker.New(worker.Config{Client: s.Client()})
	if err != nil {
		t.Fatalf("%v", err)
	}
	worker.Handle(w, "mail", new(post).send)
	s.Run(w)
	job := s.WaitFor(s.Submit("mail", mail{To: "ann"}), lessor.Completed)
	fmt.Printf("%s\n", job.Result)
	// Output: {"sent_to":"ann"}
}
