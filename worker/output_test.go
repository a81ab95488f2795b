package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/worker"
)

var errAgain = errors.New("again")

// TestOutputIsSeenWhileTheHandlerRuns has a second attempt whose output is apart from that of the first.
func TestOutputIsSeenWhileTheHandlerRuns(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{ID: "w"})
		worker.Handle(w, "pack", func(_ context.Context, job *worker.Job[order]) (any, error) {
			fmt.Fprintf(job.Output(), "attempt %d begins\n", job.Attempt)
			time.Sleep(5 * time.Second)
			fmt.Fprint(job.Output(), strings.Repeat("x", 100_000), "end")
			if job.Attempt == 1 {
				return nil, errAgain
			}
			return nil, nil
		}, worker.HandlerConfig{ExtendOn: worker.ExtendOnLife})
		id := s.Submit("pack", order{})
		defer s.Run(w)()
		s.WaitFor(id, lessor.Running, lessor.Leased)
		time.Sleep(1500 * time.Millisecond)
		if got := s.Output(id); got != "attempt 1 begins\n" {
			t.Errorf("the output after 1.5 s is %q", got)
		}
		s.WaitFor(id, lessor.Completed)
		want := "attempt 2 begins\n" + strings.Repeat("x", 100_000) + "end"
		if got := s.Output(id); got != want {
			t.Errorf("the output of the last attempt has %d bytes, want %d", len(got), len(want))
		}
	})
	if _, err := fmt.Fprint(new(worker.Job[order]).Output(), "nowhere"); err != nil {
		t.Errorf("a job made by hand refuses output: %v", err)
	}
}

// TestOutputBeforeAReleaseIsReadFirst follows a job whose worker is stopped after its first words, and reads it once
// more when it has ended.
func TestOutputBeforeAReleaseIsReadFirst(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		id := s.Submit("pack", order{})
		read := func(q lessor.OutputQuery, follow bool) (text string) {
			for out, err := range s.Client().AllOutput(t.Context(), id, q, follow) {
				if err != nil {
					t.Error(err)
					break
				}
				text += fmt.Sprintf("%d:%s", out.Attempt, out.Data)
			}
			return text
		}
		followed := make(chan string, 2)
		for _, q := range []lessor.OutputQuery{{}, {Attempt: 1}} {
			go func() { followed <- read(q, true) }()
		}
		const runs = 4
		for n := range runs {
			w := s.worker(worker.Config{ID: fmt.Sprintf("w-%d", n)})
			worker.Handle(w, "pack", func(_ context.Context, job *worker.Job[order]) (any, error) {
				fmt.Fprintf(job.Output(), "run %d\n", n)
				if n == runs-1 {
					return nil, nil
				}
				<-job.Draining()
				fmt.Fprintf(job.Output(), "stopped\n")
				return nil, worker.Release(0)
			}, worker.HandlerConfig{ExtendOn: worker.ExtendOnLife})
			stop := s.Run(w)
			if n == runs-1 {
				s.WaitFor(id, lessor.Completed)
			} else {
				s.WaitForLease(id)
				time.Sleep(3 * time.Second)
			}
			stop()
		}
		text := func(sent string) string { return strings.ReplaceAll(sent, "1:", "") }
		want := "run 0\nstopped\nrun 1\nstopped\nrun 2\nstopped\nrun 3\n"
		for range cap(followed) {
			if got := text(<-followed); got != want {
				t.Errorf("the follower saw %q, want %q", got, want)
			}
		}
		if got := text(read(lessor.OutputQuery{}, false)); got != want {
			t.Errorf("at the end the output is %q, want %q", got, want)
		}
		if got := text(read(lessor.OutputQuery{Offset: -4}, false)); got != "n 3\n" {
			t.Errorf("the last four bytes are %q", got)
		}
	})
}
