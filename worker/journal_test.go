package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lessor"
	"lessor/worker"
)

// TestOnceRunsAStepOnce kills the worker after every step of a job: each step runs once, no attempt is lost, and every
// attempt gets the results of those before.
func TestOnceRunsAStepOnce(t *testing.T) {
	const steps = 12 // more than the job has attempts
	withServer(t, func(t *testing.T, s testServer) {
		ran, attempts := map[string]int{}, 0
		handle := func(name string) func(context.Context, *worker.Job[order]) (any, error) {
			return func(ctx context.Context, job *worker.Job[order]) (any, error) {
				attempts++
				sum := 0
				for n := range steps {
					key := fmt.Sprint("step-", n)
					fresh := false
					got, err := worker.Once(ctx, job, key, func() (int, error) {
						ran[key]++
						fresh = true
						return n, nil
					})
					if err != nil {
						return nil, err
					}
					if sum += got; fresh {
						s.KillWorker(name)
						<-ctx.Done()
						return nil, context.Cause(ctx)
					}
				}
				return sum, nil
			}
		}
		id := s.Submit("pack", order{})
		for n := range steps + 1 {
			name := fmt.Sprint("w-", n)
			w := s.worker(worker.Config{ID: name})
			worker.Handle(w, "pack", handle(name))
			s.Run(w)
			time.Sleep(5 * time.Minute)
		}
		job := s.WaitFor(id, lessor.Completed)
		if string(job.Result) != "66" || job.Attempt != 2 || job.JournalEntries != steps {
			t.Errorf("result %s of attempt %d with %d entries, want 66 of attempt 2 with %d", job.Result, job.Attempt,
				job.JournalEntries, steps)
		}
		if attempts != steps+1 || len(ran) != steps {
			t.Errorf("%d attempts ran %d steps, want %d and %d", attempts, len(ran), steps+1, steps)
		}
		for key, n := range ran {
			if n != 1 {
				t.Errorf("%s ran %d times", key, n)
			}
		}
	})
}

// TestOnceWithoutAServer: a job that a test has made by hand keeps its journal in memory. An error is not recorded.
func TestOnceWithoutAServer(t *testing.T) {
	job, calls, broken := &worker.Job[order]{}, 0, errors.New("broken")
	for _, want := range []error{broken, nil, nil} {
		got, err := worker.Once(t.Context(), job, "a", func() (string, error) {
			calls++
			return "done", want
		})
		if !errors.Is(err, want) || err == nil && got != "done" {
			t.Fatalf("once: %q, %v; want %v", got, err, want)
		}
	}
	if calls != 2 {
		t.Errorf("the step ran %d times, want again after its error and not after its success", calls)
	}
}

// TestOnceRunsAStepOnceForAllCallers has goroutines of a handler come to a step together: one runs it, the others wait
// for its result. If it fails, another one runs it.
func TestOnceRunsAStepOnceForAllCallers(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		worker.Handle(w, "pack", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			var ran atomic.Int64
			var callers sync.WaitGroup
			results, errs := make([]int64, 10), make([]error, 10)
			for i := range results {
				callers.Go(func() {
					results[i], errs[i] = worker.Once(ctx, job, "step", func() (int64, error) {
						n := ran.Add(1)
						time.Sleep(time.Second) // the others come meanwhile
						if n == 1 {
							return 0, errors.New("broken")
						}
						return n, nil
					})
				})
			}
			callers.Wait()
			failed := 0
			for i := range results {
				switch {
				case errs[i] != nil:
					failed++
				case results[i] != 2:
					t.Errorf("a caller got %d, want 2", results[i])
				}
			}
			if ran.Load() != 2 || failed != 1 {
				t.Errorf("the step ran %d times, and %d callers got an error; want 2 and 1", ran.Load(), failed)
			}
			return nil, nil
		})
		defer s.Run(w)()
		if j := s.WaitForEnd(s.Submit("pack", order{})); j.JournalEntries != 1 || j.State != lessor.Completed {
			t.Errorf("the job is %s with %d entries, want it completed with one", j.State, j.JournalEntries)
		}
	})
}

// TestAppendWaitsForTheServer: an append outlasts an outage, and is refused when the lease is over.
func TestAppendWaitsForTheServer(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		appended, lost := make(chan error, 1), make(chan error, 1)
		worker.Handle(w, "pack", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			go s.Restart(5 * time.Second)
			time.Sleep(time.Second)
			appended <- job.Journal().Append(ctx, "a", "note", 1)
			<-ctx.Done()
			lost <- job.Journal().Append(context.WithoutCancel(ctx), "b", "note", 2)
			return nil, nil
		})
		id := s.Submit("pack", order{})
		defer s.Run(w)()
		if err := <-appended; err != nil {
			t.Fatalf("append during an outage: %v", err)
		}
		if _, err := s.Client().Cancel(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
		if err := <-lost; !errors.Is(err, worker.ErrLeaseLost) {
			t.Errorf("append after the end: %v, want ErrLeaseLost", err)
		}
		keys := []string{}
		for _, e := range s.Journal(id) {
			keys = append(keys, e.Key)
		}
		if !slices.Equal(keys, []string{"a"}) {
			t.Errorf("the journal has %v, want a alone", keys)
		}
	})
}

// TestMessageHasAJournal: the journal of a message on a server goes on over its deliveries; one in memory has none.
func TestMessageHasAJournal(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		box := openServerMailbox(t, s.Server, "letter")
		if _, err := box.Send(t.Context(), []byte("hello"), nil); err != nil {
			t.Fatal(err)
		}
		for delivery := range 3 {
			got, err := box.Receive(t.Context(), 1, time.Minute, time.Second)
			if err != nil || len(got) != 1 {
				t.Fatalf("received %v, %v", got, err)
			}
			m, ok := got[0].(worker.Journaled)
			if !ok {
				t.Fatal("the message has no journal")
			}
			if err := m.Journal().Append(t.Context(), fmt.Sprint(delivery), "note", delivery); err != nil {
				t.Fatal(err)
			}
			entries, err := m.Journal().Entries(t.Context())
			if err != nil || len(entries) != delivery+1 || entries[delivery].N != delivery+1 {
				t.Fatalf("delivery %d has the entries %v, %v", delivery, entries, err)
			}
			if err := m.Return(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := m.Journal().Append(t.Context(), "late", "note", 1); !errors.Is(err, worker.ErrReceiptExpired) {
				t.Fatalf("append after the delivery: %v, want ErrReceiptExpired", err)
			}
		}
	})
}
