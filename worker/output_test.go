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
	inShop(t, func(t *testing.T, s shop) {
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
