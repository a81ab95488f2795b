package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lessor"
	"lessor/worker"
)

// A worker that cannot reach the server must stop before the lease can have ended, though this outage was the
// server's own. The job is given back as soon as a server answers, and costs no attempt.
func TestOutageLongerThanTheLeaseCostsNoAttempt(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{TTL: 10 * time.Second})
		causes := make(chan error, 1)
		worker.Handle(w, "long", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			if job.Interruptions > 0 {
				return nil, nil
			}
			err := beatUntil(ctx, job.Beat, time.Second)
			causes <- context.Cause(ctx)
			return nil, err
		})
		s.Run(w)
		id := s.Submit("long", nil)
		s.WaitFor(id, lessor.Running)
		s.Restart(time.Minute)
		if cause := <-causes; !errors.Is(cause, worker.ErrLeaseLost) ||
			!strings.Contains(cause.Error(), "no heartbeat was acknowledged") {
			t.Errorf("stopped because %v, want a lost lease for want of an answer", cause)
		}
		if job := s.WaitFor(id, lessor.Completed, lessor.Expired); job.State != lessor.Completed || job.Attempt != 1 ||
			job.Interruptions != 1 {
			t.Errorf("%s at attempt %d after %d interruptions, want completed at 1 after 1",
				job.State, job.Attempt, job.Interruptions)
		}
	})
}

// The handler returns as soon as its context ends. The worker tries for longer than the kill grace to send what it has
// printed, which is not held against it.
func TestOutageLongerThanTheLeaseCostsAJobThatPrintsNoAttempt(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{KillGrace: 5 * time.Second})
		worker.Handle(w, "long", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			if job.Interruptions > 0 {
				return nil, nil
			}
			return nil, beatUntil(ctx, func() {
				job.Beat()
				fmt.Fprintln(job.Output(), "a line")
			}, time.Second)
		})
		s.Run(w)
		id := s.Submit("long", nil)
		s.WaitFor(id, lessor.Running)
		s.Restart(3 * time.Minute)
		if job := s.WaitForEnd(id); job.State != lessor.Completed || job.Attempt != 1 || job.Interruptions != 1 {
			t.Errorf("%s at attempt %d after %d interruptions, want completed at 1 after 1",
				job.State, job.Attempt, job.Interruptions)
		}
	})
}

func TestShortOutageIsNotNoticed(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{})
		worker.Handle(w, "long", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			ctx, done := context.WithTimeout(ctx, 5*time.Minute)
			defer done()
			_ = beatUntil(ctx, job.Beat, time.Second)
			if errors.Is(context.Cause(ctx), worker.ErrLeaseLost) {
				return nil, context.Cause(ctx)
			}
			return nil, nil
		})
		s.Run(w)
		id := s.Submit("long", nil)
		for range 4 {
			s.Advance(30 * time.Second)
			s.Restart(20 * time.Second)
		}
		if job := s.WaitFor(id, lessor.Completed, lessor.Failed, lessor.Expired); job.State != lessor.Completed ||
			job.Attempt != 1 || job.Interruptions != 0 {
			t.Errorf("%s at attempt %d after %d interruptions, want completed at 1 after 0",
				job.State, job.Attempt, job.Interruptions)
		}
	})
}

// A lease may be as old as the request that waited for it: its first heartbeat is answered before its handler starts.
func TestGrantAfterALongWaitIsConfirmedFirst(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		r := &route{RoundTripper: s.Transport()}
		w := s.worker(worker.Config{Client: over(t, r), TTL: 3 * time.Second})
		beats := make(chan int, 2)
		worker.Handle(w, "a", func(context.Context, *worker.Job[order]) (any, error) {
			beats <- r.calls("heartbeat")
			return nil, nil
		})
		s.Run(w)
		s.Advance(10 * time.Second)
		for range 2 {
			if job := s.WaitFor(s.Submit("a", nil), lessor.Completed); job.Attempt != 1 || job.Interruptions != 0 {
				t.Errorf("completed at attempt %d after %d interruptions, want 1 after 0",
					job.Attempt, job.Interruptions)
			}
		}
		if first, second := <-beats, <-beats; first != 1 || second != 1 {
			t.Errorf("%d and %d heartbeats before the handlers started; want 1 after a long wait, none after a short",
				first, second-first)
		}
	})
}

// late holds heartbeats back until open is closed.
type late struct {
	http.RoundTripper
	open chan struct{}
	held atomic.Int32
}

func (l *late) RoundTrip(req *http.Request) (*http.Response, error) {
	if path.Base(req.URL.Path) == "heartbeat" {
		l.held.Add(1)
		<-l.open
	}
	return l.RoundTripper.RoundTrip(req)
}

// The lease is revoked while the heartbeat that confirms it is on its way, and that news sends a second heartbeat. Both
// are answered that the lease is over.
func TestGrantThatIsRevokedBeforeItsStartFreesOnePlace(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		l := &late{RoundTripper: s.Transport(), open: make(chan struct{})}
		w := s.worker(worker.Config{
			Client: over(t, &route{RoundTripper: l}), Concurrency: 1, TTL: 3 * time.Second,
		})
		var running, most atomic.Int32
		worker.Handle(w, "a", func(context.Context, *worker.Job[order]) (any, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(2 * time.Second)
			return nil, nil
		})
		s.Run(w)
		s.Advance(10 * time.Second)
		revoked := s.Submit("a", nil)
		if err := s.Admin().Revoke(t.Context(), s.WaitForLease(revoked).ID, ""); err != nil {
			t.Fatal(err)
		}
		s.Advance(100 * time.Millisecond)
		if n := l.held.Load(); n != 2 {
			t.Errorf("%d heartbeats are on their way, want 2", n)
		}
		close(l.open)
		for _, id := range append(s.submitAll("a", 2), revoked) {
			s.WaitFor(id, lessor.Completed)
		}
		if n := most.Load(); n != 1 {
			t.Errorf("%d jobs ran at once, want 1", n)
		}
	})
}

// Starting a handler pays for one extension, also after a grant that was confirmed.
func TestStartIsTheFirstBeat(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{TTL: 3 * time.Second})
		worker.Handle(w, "silent", func(ctx context.Context, _ *worker.Job[order]) (any, error) {
			select {
			case <-time.After(3300 * time.Millisecond):
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		s.Run(w)
		for _, wait := range []time.Duration{0, 10 * time.Second} {
			s.Advance(wait)
			if job := s.WaitForEnd(s.Submit("silent", nil)); job.State != lessor.Completed || job.Attempt != 1 {
				t.Errorf("%s at attempt %d after a request of %s, want completed at 1", job.State, job.Attempt, wait)
			}
		}
	})
}

// A worker repeats a request whose answer was lost, and requests nothing else in its place.
func TestLostGrantIsRequestedAgain(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		lost := 0
		r := &route{RoundTripper: s.Transport(), lose: func(verb string) bool {
			lost++
			return verb == "request" && lost < 20
		}}
		w := s.worker(worker.Config{Client: over(t, r), TTL: time.Minute})
		worker.Handle(w, "a", func(context.Context, *worker.Job[order]) (any, error) { return nil, nil })
		id := s.Submit("a", nil)
		s.Run(w)
		if job := s.WaitFor(id, lessor.Completed); job.Attempt != 1 || lost < 20 {
			t.Errorf("completed at attempt %d after %d lost answers, want 1 after 20", job.Attempt, lost)
		}
	})
}
