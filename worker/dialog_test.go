package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"lessor"
	"lessor/worker"
)

// TestQuestionsOfAHandlerCostNoAttempt has a handler ask two questions, one after the other: each attempt gets one
// question further, and the repeated attempts are not counted.
func TestQuestionsOfAHandlerCostNoAttempt(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		attempts := 0
		w := s.worker(worker.Config{})
		worker.Handle(w, "deploy", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			attempts++
			where, err := job.Ask(ctx, worker.Question{Text: "Where to?", Choices: []string{"here", "there"}})
			if err != nil {
				return nil, err
			}
			when, err := job.Ask(ctx, worker.Question{Text: "When?", Within: time.Minute})
			if errors.Is(err, worker.ErrUnanswered) {
				when, err = "never", nil
			}
			return where + ", " + when, err
		})
		defer s.Run(w)()
		answered, unanswered := s.Submit("deploy", order{}), s.Submit("deploy", order{})
		s.Answer(answered, "there")
		s.Answer(unanswered, "here")
		if q := s.WaitFor(answered, lessor.Waiting).Question; q.Text != "When?" || len(q.Choices) != 0 {
			t.Errorf("the second question is %+v", q)
		}
		s.Answer(answered, "now")
		for id, want := range map[lessor.JobID]string{answered: `"there, now"`, unanswered: `"here, never"`} {
			if j := s.WaitForEnd(id); string(j.Result) != want || j.Attempt != 1 || j.Interruptions != 0 {
				t.Errorf("result %s of attempt %d with %d interruptions, want %s", j.Result, j.Attempt, j.Interruptions,
					want)
			}
		}
		if attempts != 6 {
			t.Errorf("%d attempts, want 6", attempts)
		}
	})
}

// TestUnansweredQuestionIsNotAskedAgain asks a question that gets no answer, and then one that does.
func TestUnansweredQuestionIsNotAskedAgain(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		attempts := 0
		w := s.worker(worker.Config{})
		worker.Handle(w, "deploy", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			attempts++
			_, err := job.Ask(ctx, worker.Question{Text: "Where to?", Within: time.Minute})
			if !errors.Is(err, worker.ErrUnanswered) {
				return nil, err
			}
			return job.Ask(ctx, worker.Question{Text: "When?", Within: time.Hour})
		})
		defer s.Run(w)()
		id := s.Submit("deploy", order{})
		for s.Job(id).State != lessor.Waiting || s.Job(id).Question.Text != "When?" {
			time.Sleep(time.Second)
		}
		s.Answer(id, "now")
		if j := s.WaitForEnd(id); string(j.Result) != `"now"` || attempts != 3 {
			t.Errorf("result %s after %d attempts, want 3", j.Result, attempts)
		}
	})
}

func TestHandlerGoesOnAfterAQuestionThatCannotBeAsked(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		worker.Handle(w, "deploy", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			_, err := job.Ask(ctx, worker.Question{Text: strings.Repeat("?", lessor.MaxDialog+1)})
			return err.Error(), nil
		})
		defer s.Run(w)()
		j := s.WaitForEnd(s.Submit("deploy", order{}))
		if j.State != lessor.Completed || !strings.Contains(string(j.Result), "1 to 8192 bytes long, not 8193") {
			t.Errorf("the job is %s with %s", j.State, j.Result)
		}
	})
}

// TestMessageComesBeforeTheNextHeartbeat allows less than half of the time between two heartbeats.
func TestMessageComesBeforeTheNextHeartbeat(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		worker.Handle(w, "listen", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			for m := range job.Messages(ctx) {
				return m.Text, nil
			}
			return nil, context.Cause(ctx)
		})
		defer s.Run(w)()
		id := s.Submit("listen", order{})
		s.WaitFor(id, lessor.Running)
		time.Sleep(2 * time.Second) // the heartbeat of the start is over
		sent := time.Now()
		s.Message(id, "hello")
		if j := s.WaitForEnd(id); string(j.Result) != `"hello"` || time.Since(sent) > 2*time.Second {
			t.Errorf("the handler returned %s after %v, want the message within 2 s", j.Result, time.Since(sent))
		}
	})
}

// TestMessageWhoseBodyOutlivesTheContextIsSeen ends the context of a loop while its body works on a message. A lease
// that is lost must not be extended by a confirmation: its message comes again.
func TestMessageWhoseBodyOutlivesTheContextIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		within              time.Duration
		drain, leave, quiet bool
		want                int64
	}{
		"the worker drains":                 {within: time.Hour, drain: true, want: 1},
		"the worker drains and body breaks": {within: time.Hour, drain: true, leave: true, want: 1},
		"the time of the loop is over":      {within: 10 * time.Second, want: 1},
		"the lease is lost":                 {within: time.Hour, quiet: true, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, s testServer) {
				seen := make(chan int64, 10) // one for each attempt
				w := s.worker(worker.Config{})
				worker.Handle(w, "listen", func(ctx context.Context, job *worker.Job[order]) (any, error) {
					ctx, cancel := context.WithTimeout(ctx, c.within)
					defer cancel()
					for range job.Messages(ctx) {
						if !c.quiet {
							_ = beatUntil(ctx, job.Beat, time.Second)
						}
						<-ctx.Done()
						if c.leave {
							break
						}
					}
					seen <- s.Job(job.ID).MessagesSeen
					return nil, nil
				})
				id := s.Submit("listen", order{})
				stop := s.Run(w)
				s.WaitForLease(id)
				s.Message(id, "hello")
				s.Advance(5 * time.Second)
				if !c.drain {
					s.Advance(2 * time.Minute)
				}
				stop()
				if got := <-seen; got != c.want {
					t.Errorf("message %d is the last that the server knows to be seen, want %d", got, c.want)
				}
			})
		})
	}
}

// TestMessagesSurviveTheirWorkers sends thousands of messages to one job while its workers are killed. The workers
// remember the number of the last message, as in a checkpoint: a message may come twice, with the same number.
func TestMessagesSurviveTheirWorkers(t *testing.T) {
	all, every := int64(2500), int64(400)
	if os.Getenv("LESSOR_CHAOS") == "full" {
		all, every = 10_000, 1000
	}
	withServer(t, func(t *testing.T, s testServer) {
		var seen, again int64
		kill := func() {}
		handle := func(ctx context.Context, job *worker.Job[order]) (any, error) {
			for m := range job.Messages(ctx) {
				switch {
				case m.Seq <= seen:
					again++
				case m.Seq != seen+1 || m.Text != fmt.Sprint("number ", m.Seq):
					t.Errorf("message %d %q follows number %d", m.Seq, m.Text, seen)
				default:
					if seen++; seen%every == every/2 {
						kill()
					}
				}
				if seen == all {
					break
				}
			}
			return nil, context.Cause(ctx)
		}
		job, err := s.Client().Submit(t.Context(), "listen", order{}, &lessor.SubmitOptions{MaxAttempts: 50})
		if err != nil {
			t.Fatal(err)
		}
		id := job.ID
		var sender sync.WaitGroup
		defer sender.Wait()
		sender.Go(func() {
			for n := int64(1); n <= all && !t.Failed(); {
				if _, err := s.Client().Message(t.Context(), id, fmt.Sprint("number ", n)); err == nil {
					n++
				} else if lessor.CodeOf(err) == lessor.CodeConflict {
					time.Sleep(time.Second) // a thousand wait
				} else {
					t.Error(err)
					return
				}
			}
		})
		for n := 0; n < 50 && s.Job(id).State != lessor.Completed; n++ {
			name := fmt.Sprint("w-", n)
			w := s.worker(worker.Config{ID: name})
			worker.Handle(w, "listen", handle)
			kill = func() { s.KillWorker(name) }
			stop := s.Run(w)
			time.Sleep(5 * time.Minute)
			stop()
		}
		if j := s.Job(id); seen != all || j.MessagesSeen != all {
			t.Errorf("%d messages were seen, %d are confirmed, want %d", seen, j.MessagesSeen, all)
		}
		t.Logf("%d messages came again", again)
	})
}
