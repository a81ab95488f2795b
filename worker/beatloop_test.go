package worker_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/client"
	"lessor/lessortest"
	"lessor/node"
	"lessor/worker"
)

// route is a transport that counts calls by the last word of their path, and can lose answers.
type route struct {
	http.RoundTripper
	mu    sync.Mutex
	count map[string]int
	lose  func(verb string) bool // whether the answer is dropped; nil = never
	slow  time.Duration          // how long the answer to a heartbeat takes
}

func (r *route) RoundTrip(req *http.Request) (*http.Response, error) {
	verb := path.Base(req.URL.Path)
	r.mu.Lock()
	r.count[verb]++
	r.mu.Unlock()
	resp, err := r.RoundTripper.RoundTrip(req)
	if verb == "heartbeat" {
		time.Sleep(r.slow)
	}
	if err == nil && r.lose != nil && r.lose(verb) {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return nil, errors.New("the answer was lost")
	}
	return resp, err
}

func (r *route) calls(verb string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count[verb]
}

// over returns a client that sends its calls through r.
func over(t *testing.T, r *route) *client.Client {
	t.Helper()
	r.count = map[string]int{}
	c, err := client.New(client.Config{Server: "http://127.0.0.1", HTTP: &http.Client{Transport: r}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wideServer starts a server with room for n leases of ttl.
func wideServer(t *testing.T, n int, ttl time.Duration) testServer {
	t.Helper()
	cfg := node.Config{}
	cfg.Capacity.TotalUnits, cfg.Capacity.ReserveUnits = n+10, 1
	cfg.Lease.TTL = ttl
	return testServer{lessortest.Start(t, cfg), t, &journal{}}
}

// submitAll submits n jobs of one type.
func (s testServer) submitAll(jobType string, n int) []lessor.JobID {
	s.t.Helper()
	var ids []lessor.JobID
	for n > 0 {
		page := make([]lessor.Submission, min(n, 1000))
		for i := range page {
			page[i].Type = &jobType
		}
		jobs, err := s.Client().SubmitBatch(context.Background(), page)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		n -= len(page)
	}
	return ids
}

// beatUntil sends a heartbeat every d until ctx is done.
func beatUntil(ctx context.Context, beat func(), d time.Duration) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			beat()
		}
	}
}

func TestThousandLeasesAreOneHeartbeatCallAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wideServer(t, 1000, 0)
		r := &route{RoundTripper: s.Transport()}
		w := s.worker(worker.Config{Client: over(t, r), Concurrency: 1000})
		var lost atomic.Int32
		worker.Handle(w, "hold", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			err := beatUntil(ctx, job.Beat, 7*time.Second)
			if errors.Is(context.Cause(ctx), worker.ErrLeaseLost) {
				lost.Add(1)
			}
			return nil, err
		})
		s.submitAll("hold", 1000)
		s.Run(w)
		s.Advance(time.Minute)
		before := r.calls("heartbeat")
		s.Advance(10 * time.Minute)
		if n := r.calls("heartbeat") - before; n < 29 || n > 38 {
			t.Errorf("%d heartbeat calls in 10 min, want one every 16 to 20 s", n)
		}
		if st, err := s.Client().Status(t.Context()); err != nil || st.ActiveLeases != 1000 || lost.Load() != 0 {
			t.Errorf("%d leases live and %d were lost (%v), want 1000 and 0", st.ActiveLeases, lost.Load(), err)
		}
	})
}

func TestSilentHandlerIsLoggedStoppedAndLosesItsLease(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{TTL: 30 * time.Second})
		type stop struct {
			after time.Duration
			cause error
		}
		stops := make(chan stop, 1)
		worker.Handle(w, "hang", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			if job.Attempt == 1 {
				start := time.Now()
				<-ctx.Done()
				stops <- stop{time.Since(start), context.Cause(ctx)}
			}
			return nil, ctx.Err()
		})
		s.Run(w)
		id := s.Submit("hang", nil)
		got := <-stops
		// The start of the handler causes the first heartbeat; nothing causes another.
		if got.after < 27*time.Second || got.after > 42*time.Second || !errors.Is(got.cause, worker.ErrLeaseLost) {
			t.Errorf("stopped after %s because %v; want a ttl after the last heartbeat, because of the lost lease",
				got.after, got.cause)
		}
		if !strings.Contains(got.cause.Error(), "not called Beat") {
			t.Errorf("the cause is %v, which does not say that the handler was silent", got.cause)
		}
		if log := s.log.String(); strings.Count(log, "two thirds") != 1 || !strings.Contains(log, "call Beat") ||
			!strings.Contains(log, "ExtendOn: worker.ExtendOnLife") {
			t.Errorf("want one warning that names both ways out, in:\n%s", log)
		}
		job := s.WaitFor(id, lessor.Expired, lessor.Completed)
		if job.State == lessor.Completed { // it may have been retried between two looks
			t.Logf("completed at attempt %d", job.Attempt)
		}
		if job := s.WaitFor(id, lessor.Completed); job.Attempt != 2 || job.Interruptions != 0 {
			t.Errorf("attempt %d after %d interruptions, want 2 after 0: silence costs an attempt",
				job.Attempt, job.Interruptions)
		}
	})
}

func TestLifeExtendsWithoutBeats(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{TTL: 2 * time.Second})
		worker.Handle(w, "block", func(ctx context.Context, _ *worker.Job[order]) (any, error) {
			select {
			case <-time.After(10 * time.Minute):
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}, worker.HandlerConfig{ExtendOn: worker.ExtendOnLife})
		s.Run(w)
		if job := s.WaitFor(s.Submit("block", nil), lessor.Completed, lessor.Expired,
			lessor.Failed); job.State != lessor.Completed || job.Attempt != 1 {
			t.Errorf("%s at attempt %d, want completed at 1", job.State, job.Attempt)
		}
		if log := s.log.String(); strings.Contains(log, "two thirds") {
			t.Errorf("a warning for a handler that need not beat:\n%s", log)
		}
	})
}

// A handler that beats just before its lease would end keeps it, at any point of the interval.
func TestLateBeatsAreInTime(t *testing.T) {
	for _, every := range []time.Duration{900 * time.Millisecond, 1300 * time.Millisecond, 1700 * time.Millisecond} {
		t.Run(every.String(), func(t *testing.T) {
			withServer(t, func(t *testing.T, s testServer) {
				w := s.worker(worker.Config{TTL: 2 * time.Second, Concurrency: 50})
				worker.Handle(w, "slow", func(ctx context.Context, job *worker.Job[order]) (any, error) {
					ctx, done := context.WithTimeout(ctx, 3*time.Minute)
					defer done()
					_ = beatUntil(ctx, job.Beat, every)
					return nil, context.Cause(ctx)
				})
				for range 50 {
					s.Submit("slow", nil)
					s.Advance(37 * time.Millisecond)
				}
				s.Run(w)
				s.Advance(2 * time.Minute)
				if st, err := s.Client().Status(t.Context()); err != nil || st.ActiveLeases != 50 ||
					strings.Contains(s.log.String(), "Stopping") {
					t.Errorf("%d of 50 leases live (%v)\n%.2000s", st.ActiveLeases, err, s.log)
				}
			})
		})
	}
}

func TestHandlerIsStoppedBeforeItsJobCanRunElsewhere(t *testing.T) {
	for _, slow := range []time.Duration{0, 3 * time.Second} {
		t.Run(slow.String(), func(t *testing.T) {
			withServer(t, func(t *testing.T, s testServer) { stoppedBefore(t, s, slow) })
		})
	}
}

// stoppedBefore cuts off a worker whose heartbeats are answered slowly, while another worker waits for its job.
func stoppedBefore(t *testing.T, s testServer, slow time.Duration) {
	// the worker may be stopped, and get its job again, before it is cut off
	stopped, began := make(chan time.Time, 10), make(chan time.Time, 1)
	r := &route{RoundTripper: s.Transport(), slow: slow}
	cut := s.worker(worker.Config{Client: over(t, r), ID: "cut-off", TTL: 10 * time.Second})
	worker.Handle(cut, "only", func(ctx context.Context, job *worker.Job[order]) (any, error) {
		err := beatUntil(ctx, job.Beat, time.Second)
		stopped <- time.Now()
		return nil, err
	})
	s.Run(cut)
	s.WaitFor(s.Submit("only", nil), lessor.Running)
	s.Advance(30 * time.Second)
	for n := r.calls("heartbeat"); r.calls("heartbeat") == n; {
		s.Advance(10 * time.Millisecond)
	}
	s.Advance(slow) // so that the last answer arrives
	s.KillWorker("cut-off")
	other := s.worker(worker.Config{ID: "other"})
	worker.Handle(other, "only", func(context.Context, *worker.Job[order]) (any, error) {
		began <- time.Now()
		return nil, nil
	})
	s.Run(other)
	second := <-began
	var last time.Time
	for len(stopped) > 0 {
		last = <-stopped
	}
	if last.IsZero() || !last.Before(second) {
		t.Errorf("the first handler stopped at %s, the second began at %s", last, second)
	}
}

func TestSleepOfTheMachineCountsAgainstTheLease(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		var slept atomic.Int64
		w.SetWall(func() time.Time { return time.Now().Round(0).Add(time.Duration(slept.Load())) })
		causes := make(chan error, 1)
		worker.Handle(w, "nap", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			if job.Attempt > 1 || job.Interruptions > 0 {
				return nil, nil
			}
			err := beatUntil(ctx, job.Beat, time.Second)
			causes <- context.Cause(ctx)
			return nil, err
		})
		s.Run(w)
		s.WaitFor(s.Submit("nap", nil), lessor.Running)
		start := time.Now()
		slept.Store(int64(time.Hour))
		cause := <-causes
		if took := time.Since(start); took > 1100*time.Millisecond || !errors.Is(cause, worker.ErrLeaseLost) {
			t.Errorf("after an hour of sleep the handler was stopped within %s because %v; "+
				"want within a second, because of the lost lease",
				took, cause)
		}
	})
}

func TestHandlerThatDoesNotStopIsLoggedAndItsResultRefused(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{TTL: 3 * time.Second, KillGrace: 5 * time.Second, Concurrency: 1})
		returns := make(chan struct{})
		worker.Handle(w, "mule", func(_ context.Context, job *worker.Job[order]) (any, error) {
			if job.Attempt == 1 {
				<-returns
			}
			return job.Attempt, nil
		})
		s.Run(w)
		id := s.Submit("mule", nil)
		s.WaitFor(id, lessor.Expired)
		s.Advance(time.Minute)
		if log := s.log.String(); strings.Count(log, "kill grace") != 1 || !strings.Contains(log, id.String()) {
			t.Errorf("want one warning that names the job, in:\n%s", log)
		}
		s.AssertState(id, lessor.Queued) // the slot stays taken
		close(returns)
		if job := s.WaitFor(id, lessor.Completed); string(job.Result) != "2" || job.Attempt != 2 {
			t.Errorf("result %s at attempt %d, want that of the second", job.Result, job.Attempt)
		}
		if !strings.Contains(s.log.String(), "its result is refused") {
			t.Error("the log does not say that the late result was refused")
		}
	})
}
