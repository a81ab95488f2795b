package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"

	"lessor"
	"lessor/client"
	"lessor/lessortest"
	"lessor/worker"
)

// journal is a log that a test can read while it is written.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *journal) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *journal) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// testServer is a server, with the log of its workers.
type testServer struct {
	*lessortest.Server
	t   *testing.T
	log *journal
}

// withServer runs a test with a server, in a bubble.
func withServer(t *testing.T, test func(t *testing.T, s testServer)) {
	synctest.Test(t, func(t *testing.T) { test(t, testServer{lessortest.Start(t), t, &journal{}}) })
}

// worker returns a worker of s that is not yet running.
func (s testServer) worker(cfg worker.Config) *worker.Worker {
	s.t.Helper()
	if cfg.Client == nil {
		cfg.Client = s.Client()
	}
	cfg.Log = s.log.logger()
	w, err := worker.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

type order struct{ Item string }

func TestHandlerGetsItsPayloadAndItsResultIsKept(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		worker.Handle(w, "pack", func(_ context.Context, job *worker.Job[order]) (any, error) {
			return map[string]string{"packed": job.Payload.Item}, nil
		})
		s.Run(w)
		job := s.WaitFor(s.Submit("pack", order{"book"}), lessor.Completed)
		if string(job.Result) != `{"packed":"book"}` || job.Attempt != 1 {
			t.Errorf("result %s after attempt %d, want the book after 1", job.Result, job.Attempt)
		}
	})
}

// dirError is an error whose nil pointer has no text.
type dirError struct{ dir string }

func (e *dirError) Error() string { return e.dir + " is full" }

type badResult struct{}

func (badResult) MarshalJSON() ([]byte, error) { panic("no result") }

type exitResult struct{}

func (exitResult) MarshalJSON() ([]byte, error) { runtime.Goexit(); return nil, nil }

func TestErrorsFailTheAttempt(t *testing.T) {
	for _, tt := range []struct {
		name     string
		do       func() (any, error)
		attempts int
		want     string
	}{
		{"error is retried", func() (any, error) { return nil, errors.New("out of paper") }, 2, "out of paper"},
		{"permanent error is not", func() (any, error) {
			return nil, fmt.Errorf("send: %w", worker.Permanent(errors.New("no such address")))
		}, 1, "send: no such address"},
		{
			"panic with its stack", func() (any, error) { panic("on the streets of London") }, 2,
			"panic: on the streets of London\n\ngoroutine",
		},
		{
			"error whose text panics with its stack", func() (any, error) { return nil, (*dirError)(nil) }, 2,
			"panic: runtime error: invalid memory address or nil pointer dereference\n\ngoroutine",
		},
		{
			"result whose encoding panics with its stack", func() (any, error) { return badResult{}, nil }, 2,
			"panic: no result\n\ngoroutine",
		},
		{
			"result whose encoding ends the goroutine", func() (any, error) { return exitResult{}, nil }, 2,
			"the handler ended its goroutine",
		},
		{"result that is not JSON", func() (any, error) { return make(chan int), nil }, 1, "encode result"},
		{
			"error that is too long", func() (any, error) { return nil, errors.New(strings.Repeat("é\x00", 6000)) }, 2,
			"é\uFFFDé",
		},
		{
			"result that is too large", func() (any, error) { return strings.Repeat("x", 17<<20), nil }, 1,
			"the server refused the result",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withServer(t, func(t *testing.T, s testServer) {
				w := s.worker(worker.Config{TracerProvider: trace.NewTracerProvider()})
				worker.Handle(w, "print", func(context.Context, *worker.Job[order]) (any, error) { return tt.do() })
				s.Run(w)
				sub, err := s.Client().Submit(t.Context(), "print", nil, &lessor.SubmitOptions{MaxAttempts: 2})
				if err != nil {
					t.Fatal(err)
				}
				job := s.WaitForEnd(sub.ID)
				warnings := strings.Count(s.log.String(), "level=WARN")
				for n := 1; n <= tt.attempts; n++ {
					line := fmt.Sprintf("job_id=%s type=print attempt=%d", job.ID, n)
					if warnings != tt.attempts || !strings.Contains(s.log.String(), line) {
						t.Errorf("%d warnings, want one for each attempt, with %q:\n%.2000s", warnings, line, s.log)
					}
				}
				if job.State != lessor.Failed || job.Attempt != tt.attempts || job.Error == nil ||
					!strings.HasPrefix(*job.Error, tt.want) {
					t.Errorf("%s after attempt %d with error %.100q, want failed after %d with %q",
						job.State, job.Attempt, deref(job.Error), tt.attempts, tt.want)
				}
			})
		})
	}
}

func TestRefusedEndDoesNotFailTheOthersOfItsBatch(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		r := &route{RoundTripper: s.Transport(), lose: func(verb string) bool {
			if verb == "complete" {
				time.Sleep(time.Second) // so that the others gather behind the first
			}
			return false
		}}
		w := s.worker(worker.Config{Client: over(t, r), Concurrency: 30})
		all := make(chan struct{})
		worker.Handle(w, "print", func(_ context.Context, job *worker.Job[struct{ Size int }]) (any, error) {
			<-all
			return strings.Repeat("x", job.Payload.Size), nil
		})
		s.Run(w)
		var good []lessor.JobID
		for range 25 {
			good = append(good, s.Submit("print", nil))
		}
		bad := s.Submit("print", map[string]int{"Size": 17 << 20})
		s.WaitForLease(bad)
		close(all)
		s.WaitFor(bad, lessor.Failed)
		for _, id := range good {
			s.WaitFor(id, lessor.Completed)
		}
	})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestPayloadThatDoesNotFitFailsTheAttempt(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		worker.Handle(w, "pack", func(context.Context, *worker.Job[order]) (any, error) {
			t.Error("the handler was called")
			return nil, nil
		})
		s.Run(w)
		job := s.WaitFor(s.Submit("pack", map[string]any{"Item": 7}), lessor.Failed)
		if !strings.Contains(deref(job.Error), "decode payload") || job.RetryAt.IsZero() {
			t.Errorf("error %q, retry at %s; want a failure of decoding that is retried", deref(job.Error), job.RetryAt)
		}
	})
}

func TestReleaseGivesTheJobBackWithItsAttempt(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		var times []time.Time
		worker.Handle(w, "poll", func(context.Context, *worker.Job[order]) (any, error) {
			times = append(times, time.Now())
			if len(times) < 3 {
				return nil, worker.Release(time.Minute)
			}
			return nil, nil
		})
		s.Run(w)
		job := s.WaitFor(s.Submit("poll", nil), lessor.Completed)
		if job.Attempt != 1 || job.Interruptions != 2 {
			t.Errorf("attempt %d after %d interruptions, want 1 after 2", job.Attempt, job.Interruptions)
		}
		if gap := times[2].Sub(times[1]); gap < time.Minute || gap > 62*time.Second {
			t.Errorf("it came back after %s, want a minute", gap)
		}
	})
}

func TestCheckpointReachesTheNextAttempt(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		type page struct{ N int }
		worker.Handle(w, "crawl", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			var at page
			had, err := job.LoadCheckpoint(&at)
			if err != nil || had != (job.Attempt > 1) || at.N != job.Attempt-1 {
				t.Errorf("attempt %d began at page %d (%v, %v)", job.Attempt, at.N, had, err)
			}
			if err := job.SaveCheckpoint(ctx, page{job.Attempt}); err != nil {
				t.Errorf("save: %v", err)
			}
			if job.Attempt < 3 {
				return nil, errors.New("the line went dead")
			}
			return at.N, nil
		})
		s.Run(w)
		if job := s.WaitFor(s.Submit("crawl", nil), lessor.Completed); string(job.Result) != "2" {
			t.Errorf("the last attempt began at page %s, want 2", job.Result)
		}
	})
}

func TestReportsAreSentSoonAndTheLatestWins(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		worker.Handle(w, "copy", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			for i := range 100 {
				job.Report(float64(i+1)/100, fmt.Sprintf("file %d", i+1))
				time.Sleep(100 * time.Millisecond)
			}
			<-ctx.Done()
			return nil, nil
		})
		s.Run(w)
		id := s.Submit("copy", nil)
		s.WaitFor(id, lessor.Running)
		s.Advance(5 * time.Second)
		if job := s.Job(id); job.Progress == nil || *job.Progress < 0.35 || *job.Progress > 0.51 {
			t.Errorf("progress after 5 s is %v, want about 0.5", *job.Progress)
		}
		s.Advance(7 * time.Second)
		if job := s.Job(id); *job.Progress != 1 || deref(job.Message) != "file 100" {
			t.Errorf("the last report is %v, %q; want 1, file 100", *job.Progress, deref(job.Message))
		}
	})
}

func TestConcurrencyIsBoundedByTypeAndAltogether(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{Concurrency: 12})
		var mu sync.Mutex
		now, most := map[string]int{}, map[string]int{}
		step := func(kind string, by int) {
			mu.Lock()
			defer mu.Unlock()
			for _, k := range []string{kind, "all"} {
				now[k] += by
				most[k] = max(most[k], now[k])
			}
		}
		do := func(_ context.Context, job *worker.Job[order]) (any, error) {
			step(job.Type, 1)
			defer step(job.Type, -1)
			time.Sleep(time.Second)
			return nil, nil
		}
		worker.Handle(w, "heavy", do, worker.HandlerConfig{Concurrency: 2})
		worker.Handle(w, "light", do)
		var jobs []lessor.JobID
		for range 20 {
			jobs = append(jobs, s.Submit("heavy", nil), s.Submit("light", nil), s.Submit("light", nil))
		}
		s.Run(w)
		start := time.Now()
		for _, id := range jobs {
			s.WaitFor(id, lessor.Completed)
		}
		if most["heavy"] != 2 || most["light"] < 10 || most["all"] != 12 {
			t.Errorf("at most %v ran at once; want 2 heavy, at least 10 light, 12 altogether", most)
		}
		if took := time.Since(start); took > 13*time.Second {
			t.Errorf("it took %s, want little more than the 10 s that 20 heavy jobs take two at a time", took)
		}
	})
}

func TestTypeWithRoomAgainIsAskedForAtOnce(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		worker.Handle(w, "rare", func(context.Context, *worker.Job[order]) (any, error) { return nil, nil })
		worker.Handle(w, "single", func(context.Context, *worker.Job[order]) (any, error) {
			time.Sleep(time.Second)
			return nil, nil
		}, worker.HandlerConfig{Concurrency: 1})
		first, second := s.Submit("single", nil), s.Submit("single", nil)
		start := time.Now()
		s.Run(w)
		s.WaitFor(first, lessor.Completed)
		s.WaitFor(second, lessor.Completed)
		if took := time.Since(start); took > 2200*time.Millisecond {
			t.Errorf("two jobs of a second each took %s: the request that waited for others was not given up", took)
		}
	})
}

// TestStoppedJobStopsItsHandler stops jobs in every way that the server has, under handlers that do not beat.
func TestStoppedJobStopsItsHandler(t *testing.T) {
	type stop func(context.Context, *client.Client, lessor.Job) error
	cancel := func(force bool) stop {
		return func(ctx context.Context, c *client.Client, j lessor.Job) error {
			_, err := c.Cancel(ctx, j.ID, force)
			return err
		}
	}
	revoke := func(ctx context.Context, c *client.Client, j lessor.Job) error {
		return c.Revoke(ctx, *j.LeaseID, "moved")
	}
	for name, c := range map[string]struct {
		stop  stop
		cause error
		text  string
	}{
		"cancel":          {cancel(false), worker.ErrCancelled, "cancel"},
		"cancel by force": {cancel(true), worker.ErrLeaseLost, "cancelled"},
		"revoke":          {revoke, worker.ErrLeaseLost, "revoked"},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, s testServer) {
				w := s.worker(worker.Config{Concurrency: 1}) // no request for leases waits
				causes := make(chan error, 1)
				worker.Handle(w, "long", func(ctx context.Context, _ *worker.Job[order]) (any, error) {
					<-ctx.Done()
					causes <- context.Cause(ctx)
					return nil, ctx.Err()
				})
				s.Run(w)
				id := s.Submit("long", nil)
				job := s.WaitFor(id, lessor.Running)
				s.Advance(25 * time.Second) // a heartbeat was sent; without a beat there is no other
				start := time.Now()
				if err := c.stop(t.Context(), s.Admin(), job); err != nil {
					t.Fatal(err)
				}
				cause := <-causes
				if took := time.Since(start); !errors.Is(cause, c.cause) || took > 2*time.Second {
					t.Errorf("the handler was stopped after %s because %v, want %v within 2 s", took, cause, c.cause)
				}
				if !strings.Contains(cause.Error(), c.text) {
					t.Errorf("the cause is %q, want it to say %q", cause, c.text)
				}
				s.WaitFor(id, lessor.Cancelled, lessor.Failed, lessor.Queued, lessor.Leased)
			})
		})
	}
}

// TestHandlerLearnsThatItsRuntimeIsOver has a handler that stops, and one that returns a result nevertheless.
func TestHandlerLearnsThatItsRuntimeIsOver(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		causes := make(chan error, 1)
		worker.Handle(w, "long", func(ctx context.Context, _ *worker.Job[order]) (any, error) {
			start := time.Now()
			<-ctx.Done()
			if took := time.Since(start); took < 5*time.Second || took > 6*time.Second {
				t.Errorf("the handler was stopped after %s, want 5 s", took)
			}
			causes <- context.Cause(ctx)
			return nil, ctx.Err()
		}, worker.HandlerConfig{ExtendOn: worker.ExtendOnLife})
		s.Run(w)
		sub, err := s.Client().Submit(t.Context(), "long", nil, &lessor.SubmitOptions{
			MaxAttempts: 1, MaxRuntime: 5 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		if cause := <-causes; !errors.Is(cause, worker.ErrMaxRuntime) || !errors.Is(cause, worker.ErrLeaseLost) {
			t.Errorf("the handler was stopped because %v, want %v", cause, worker.ErrMaxRuntime)
		}
		if job := s.WaitForEnd(sub.ID); job.State != lessor.Failed || job.Error == nil ||
			!strings.Contains(*job.Error, "max_runtime") {
			t.Errorf("the job is %s with error %v", job.State, deref(job.Error))
		}
		if log := s.log.String(); strings.Contains(log, "WARN") {
			t.Errorf("the server says how the attempt ended, and the worker warns:\n%s", log)
		}
	})
}

func TestHandlerLearnsOfALostLease(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		causes := make(chan error, 1)
		worker.Handle(w, "long", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			if job.Attempt > 1 {
				return "second", nil
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return "first", nil
		}, worker.HandlerConfig{ExtendOn: worker.ExtendOnLife})
		s.Run(w)
		id := s.Submit("long", nil)
		s.Expire(s.WaitForLease(id).ID)
		job := s.WaitFor(id, lessor.Completed)
		if cause := <-causes; !errors.Is(cause, worker.ErrLeaseLost) || !strings.Contains(cause.Error(), "expired") {
			t.Errorf("the handler was stopped because %v, want %v: expired", cause, worker.ErrLeaseLost)
		}
		if string(job.Result) != `"second"` {
			t.Errorf("the result is %s, want that of the second attempt", job.Result)
		}
	})
}

func TestWorkerRunsOnceAndNeedsAHandler(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		if err := w.Run(t.Context()); err == nil {
			t.Error("a worker without handlers ran")
		}
		worker.Handle(w, "a", func(context.Context, *worker.Job[json.RawMessage]) (any, error) { return nil, nil })
		s.Run(w)
		synctest.Wait()
		if err := w.Run(t.Context()); err == nil {
			t.Error("a worker ran twice")
		}
	})
}

func BenchmarkJobBeat(b *testing.B) {
	s := lessortest.Start(b)
	w, err := worker.New(worker.Config{Client: s.Client()})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	worker.Handle(w, "beat", func(_ context.Context, job *worker.Job[order]) (any, error) {
		defer close(done)
		b.ReportAllocs()
		for b.Loop() {
			job.Beat()
		}
		return nil, nil
	})
	s.Run(w)
	s.Submit("beat", nil)
	<-done
}
