package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/client"
	"lessor/worker"
)

// run runs w until stop is called. stop returns the error of Run, and how long Run took to end.
func run(w *worker.Worker) (stop func() (time.Duration, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	return func() (time.Duration, error) {
		start := time.Now()
		cancel()
		err := <-ran
		return time.Since(start), err
	}
}

func TestDrainFinishesWhatCanFinishAndReleasesTheRest(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{Concurrency: 20, TTL: 2 * time.Second})
		worker.Handle(w, "work", func(ctx context.Context, job *worker.Job[struct{ Seconds int }]) (any, error) {
			ctx, done := context.WithTimeout(ctx, time.Duration(job.Payload.Seconds)*time.Second)
			defer done()
			_ = beatUntil(ctx, job.Beat, 300*time.Millisecond)
			if cause := context.Cause(ctx); errors.Is(cause, worker.ErrDraining) {
				return nil, cause
			}
			return nil, nil
		})
		var short, long []lessor.JobID
		for range 5 {
			short = append(short, s.Submit("work", map[string]int{"Seconds": 20}))
			long = append(long, s.Submit("work", map[string]int{"Seconds": 3600}))
		}
		stop := run(w)
		s.Advance(10 * time.Second)
		took, err := stop()
		if err != nil || took < 15*time.Second || took > 16*time.Second {
			t.Errorf("Run ended after %s with %v, want nil after the drain timeout of 15 s", took, err)
		}
		if log := s.log.String(); strings.Contains(log, "WARN") {
			t.Errorf("a clean stop logs a warning:\n%s", log)
		}
		for i := range short {
			s.AssertState(short[i], lessor.Completed)
			s.AssertState(long[i], lessor.Queued)
			if job := s.Job(long[i]); job.Attempt != 0 || job.Interruptions != 1 {
				t.Errorf("attempt %d after %d interruptions, want 0 after 1: a drain costs no attempt",
					job.Attempt, job.Interruptions)
			}
		}
	})
}

func TestDrainEndsAtOnceWhenNothingRuns(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		worker.Handle(w, "a", func(context.Context, *worker.Job[order]) (any, error) { return nil, nil })
		stop := run(w)
		s.Advance(7 * time.Second) // in the middle of a request that waits
		if took, err := stop(); err != nil || took > 100*time.Millisecond {
			t.Errorf("Run ended after %s with %v, want nil at once", took, err)
		}
	})
}

func TestHandlerCanSaveAndReleaseWhenTheDrainBegins(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		worker.Handle(w, "long", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			<-job.Draining()
			if err := job.SaveCheckpoint(ctx, "half way"); err != nil {
				t.Errorf("save: %v", err)
			}
			return nil, worker.Release(0)
		})
		id := s.Submit("long", nil)
		stop := run(w)
		s.Advance(time.Second)
		if took, err := stop(); err != nil || took > 100*time.Millisecond {
			t.Errorf("Run ended after %s with %v, want nil at once", took, err)
		}
		if job := s.Job(id); job.State != lessor.Queued || string(job.Checkpoint) != `"half way"` {
			t.Errorf("the job is %s with checkpoint %s, want queued with its checkpoint", job.State, job.Checkpoint)
		}
	})
}

func TestDrainLeavesHandlersThatDoNotStopAndSaysSo(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{DrainTimeout: time.Second, KillGrace: 2 * time.Second})
		free := make(chan struct{})
		worker.Handle(w, "mule", func(context.Context, *worker.Job[order]) (any, error) {
			<-free
			return nil, nil
		})
		id := s.Submit("mule", nil)
		stop := run(w)
		s.Advance(time.Second)
		took, err := stop()
		if err == nil || !strings.Contains(err.Error(), "1 handlers did not return") || took > 4*time.Second {
			t.Errorf("Run ended after %s with %v, want an error after 3 s", took, err)
		}
		if log := s.log.String(); !strings.Contains(log, "kill grace") || !strings.Contains(log, id.String()) {
			t.Errorf("the log does not name the job:\n%s", log)
		}
		close(free)
		s.WaitFor(id, lessor.Expired) // not released: it may still have been running
	})
}

// The output does not arrive, and the handler takes most of the kill grace. The release has to be sent in what is left.
func TestDrainGivesAJobBackWhoseOutputDoesNotArrive(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		r := &route{RoundTripper: s.Transport(), lose: func(verb string) bool { return verb == "output" }}
		w := s.worker(worker.Config{Client: over(t, r), DrainTimeout: -1, KillGrace: 5 * time.Second})
		worker.Handle(w, "a", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			<-ctx.Done()
			time.Sleep(4 * time.Second)
			fmt.Fprintln(job.Output(), "stopped")
			return nil, ctx.Err()
		})
		id := s.Submit("a", nil)
		stop := run(w)
		s.WaitForLease(id)
		if took, err := stop(); err != nil || took > 6*time.Second {
			t.Errorf("Run ended after %s with %v, want nil within 6 s", took, err)
		}
		if job := s.Job(id); job.State != lessor.Queued || job.Attempt != 0 {
			t.Errorf("the job is %s after %d attempts, want queued after 0", job.State, job.Attempt)
		}
	})
}

func TestDrainSaysWhatTheServerDidNotAcknowledge(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{ID: "cut"})
		worker.Handle(w, "a", func(ctx context.Context, _ *worker.Job[order]) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		id := s.Submit("a", nil)
		stop := run(w)
		s.WaitForLease(id)
		s.KillWorker("cut")
		if took, err := stop(); err == nil || !strings.Contains(err.Error(), "ends of 1 leases") ||
			took > 21*time.Second {
			t.Errorf("Run ended after %s with %v, want an error within 15 + 5 s", took, err)
		}
	})
}

// A worker that stops gives up its request. A lease that this request is granted is given back, not left to expire.
func TestGrantThatTheDrainOvertookIsGivenBack(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		r := &route{RoundTripper: s.Transport()}
		w := s.worker(worker.Config{Client: over(t, r)})
		worker.Handle(w, "a", func(context.Context, *worker.Job[order]) (any, error) {
			t.Error("the handler was called")
			return nil, nil
		})
		ctx, cancel := context.WithCancel(context.Background())
		r.lose = func(verb string) bool {
			if verb != "request" {
				return false
			}
			lost := ctx.Err() == nil
			cancel()
			return lost
		}
		id := s.Submit("a", nil)
		if err := w.Run(ctx); err != nil {
			t.Errorf("Run ended with %v", err)
		}
		if job := s.Job(id); job.State != lessor.Queued || job.Interruptions != 0 {
			t.Errorf("the job is %s after %d interruptions, want queued after 0", job.State, job.Interruptions)
		}
	})
}

// A lease whose first heartbeat has no answer yet has no handler that could return, so the drain itself gives it back.
func TestGrantThatWasNotConfirmedIsGivenBack(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		r := &route{RoundTripper: s.Transport(), lose: func(verb string) bool { return verb == "heartbeat" }}
		w := s.worker(worker.Config{Client: over(t, r), TTL: 3 * time.Second})
		worker.Handle(w, "a", func(context.Context, *worker.Job[order]) (any, error) {
			t.Error("the handler was called")
			return nil, nil
		})
		stop := run(w)
		s.Advance(10 * time.Second) // the grant of so old a request is confirmed first
		id := s.Submit("a", nil)
		s.Advance(500 * time.Millisecond)
		if r.calls("heartbeat") == 0 {
			t.Error("no heartbeat was sent")
		}
		if took, err := stop(); err != nil || took > time.Second {
			t.Errorf("Run ended after %s with %v, want nil at once", took, err)
		}
		if job := s.Job(id); job.State != lessor.Queued || job.Attempt != 0 {
			t.Errorf("the job is %s after %d attempts, want queued after 0", job.State, job.Attempt)
		}
	})
}

// fake is a server with fixed answers to requests for leases.
type fake struct {
	mu     sync.Mutex
	times  []time.Time
	answer func(n int) (status int, body string)
}

func (f *fake) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	f.times = append(f.times, time.Now())
	status, body := f.answer(len(f.times))
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Body: nopBody{strings.NewReader(body)},
		Request: req, Header: http.Header{},
	}, nil
}

type nopBody struct{ *strings.Reader }

func (nopBody) Close() error { return nil }

func (f *fake) worker(t *testing.T) *worker.Worker {
	t.Helper()
	c, err := client.New(client.Config{HTTP: &http.Client{Transport: f}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(worker.Config{Client: c, Log: (&journal{}).logger()})
	if err != nil {
		t.Fatal(err)
	}
	worker.Handle(w, "a", func(context.Context, *worker.Job[order]) (any, error) { return nil, nil })
	return w
}

func TestDenialIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(int) (int, string) {
			return http.StatusOK, `{"denied":true,"code":"draining","reason":"Draining","retry_after_ms":5000}`
		}}
		stop := run(f.worker(t))
		time.Sleep(time.Minute)
		_, _ = stop()
		for i := 1; i < len(f.times); i++ {
			if gap := f.times[i].Sub(f.times[i-1]); gap < 5*time.Second || gap > 6*time.Second {
				t.Errorf("asked again after %s, want 5 s and a little jitter", gap)
			}
		}
		if len(f.times) < 10 {
			t.Errorf("asked %d times in a minute", len(f.times))
		}
	})
}

func TestServerThatRefusesTheWorkerEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(int) (int, string) {
			return http.StatusUnauthorized, `{"code":"unauthenticated","detail":"no such token"}`
		}}
		err := f.worker(t).Run(t.Context())
		if lessor.CodeOf(err) != lessor.CodeUnauthenticated {
			t.Errorf("Run ended with %v, want the refusal", err)
		}
	})
}
