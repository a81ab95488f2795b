package worker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lessor"
	"lessor/lessortest"
	"lessor/worker"
)

// TestWorkViewShowsTheSameGrant requests a job with the view "work", and repeats the request with the full view.
func TestWorkViewShowsTheSameGrant(t *testing.T) { synctest.Test(t, sameGrant) }

func sameGrant(t *testing.T) {
	s := lessortest.Start(t)
	for _, sub := range []lessor.Submission{
		{Type: new("plain")},
		{
			Type: new("rich"), Payload: []byte(`{"a":[1]}`), Priority: new("low"), RequestedUnits: new(int64(2)),
			Unique: new(true), IdempotencyKey: new("k"), Tags: []string{"x", "y"}, MaxRuntimeS: new(int64(60)),
			TenantID: new("018f0000-0000-7000-8000-00000000000a"), FairnessClass: new("gold"), LockKey: new("lock"),
		},
	} {
		if _, err := s.Client().SubmitJob(t.Context(), sub); err != nil {
			t.Fatal(err)
		}
		r := lessor.LeaseRequest{
			WorkerID: new("w-" + *sub.Type), Types: []string{*sub.Type}, RequestID: new("r"),
			View: new(lessor.ViewWork),
		}
		short, denial, err := s.Client().Request(t.Context(), r)
		if err != nil || denial != nil {
			t.Fatalf("request: %v, %v", denial, err)
		}
		r.View = nil
		full, _, err := s.Client().Request(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		rest := cmpopts.IgnoreFields(lessor.Lease{}, "TTLMS", "HeartbeatAfterMS") // what is left of the time
		if diff := cmp.Diff(full, short, rest); diff != "" {
			t.Errorf("the view \"work\" of %s differs (-full +work):\n%s", *sub.Type, diff)
		}
	}
}

// TestFloodIsDoneInTurns gives a worker more jobs than it has places: it completes and requests in the same calls.
func TestFloodIsDoneInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, places = 3000, 60
		s := wideServer(t, places, 0)
		by := &route{RoundTripper: s.Transport()}
		s.submitAll("quick", jobs)
		w := s.worker(worker.Config{Client: over(t, by), Concurrency: places})
		worker.Handle(w, "quick", func(context.Context, *worker.Job[struct{}]) (any, error) { return nil, nil })
		stop := s.Run(w)
		for s.unfinished() > 0 {
			s.Advance(10 * time.Millisecond)
		}
		stop()
		turns, others := by.calls("turn"), by.calls("request")+by.calls("complete")
		if turns < jobs/places/2 || turns > 4*jobs/places || others > turns/2 {
			t.Errorf("%d jobs took %d turns and %d requests and completions, want about %d turns",
				jobs, turns, others, jobs/places)
		}
	})
}

// TestRushHoldsNothingBack has one quick job among slow ones that fill the worker: its end is sent at once, and its
// place is filled again.
func TestRushHoldsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wideServer(t, 10, 0)
		quick := s.submitAll("quick", 1)[0]
		s.submitAll("slow", 10)
		w := s.worker(worker.Config{Concurrency: 10})
		worker.Handle(w, "quick", func(context.Context, *worker.Job[struct{}]) (any, error) { return nil, nil })
		started := make(chan struct{}, 10)
		worker.Handle(w, "slow", func(ctx context.Context, job *worker.Job[struct{}]) (any, error) {
			started <- struct{}{}
			return nil, beatUntil(ctx, job.Beat, time.Second)
		})
		stop := s.Run(w)
		s.Advance(50 * time.Millisecond)
		job, err := s.Client().Job(t.Context(), quick)
		if err != nil || job.State != lessor.Completed || len(started) != 10 {
			t.Errorf("the quick job is %s and %d slow ones run (error %v), want completed and 10",
				job.State, len(started), err)
		}
		stop()
	})
}

// older is a server of a release without turns and views.
type older struct{ http.RoundTripper }

func (o older) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	refuse := func(status int, code string) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/problem+json"}}, Request: req,
			Body: io.NopCloser(strings.NewReader(`{"code":"` + code + `","detail":"unknown"}`)),
		}, nil
	}
	switch {
	case strings.HasSuffix(req.URL.Path, "/turn"):
		return refuse(http.StatusNotFound, "route_not_found")
	case bytes.Contains(body, []byte(`"view"`)):
		return refuse(http.StatusBadRequest, "invalid_request")
	}
	return o.RoundTripper.RoundTrip(req)
}

func TestWorkerUsesNoTurnsWithAnOlderServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wideServer(t, 20, 0)
		s.submitAll("quick", 200)
		by := &route{RoundTripper: older{s.Transport()}}
		w := s.worker(worker.Config{Client: over(t, by), Concurrency: 20})
		worker.Handle(w, "quick", func(context.Context, *worker.Job[struct{}]) (any, error) { return nil, nil })
		stop := s.Run(w)
		for s.unfinished() > 0 {
			s.Advance(10 * time.Millisecond)
		}
		stop()
		if n := by.calls("turn"); n > 2 {
			t.Errorf("the worker tried %d turns with a server that knows none", n)
		}
	})
}

// mute is a server that does not answer turns.
type mute struct{ http.RoundTripper }

func (m mute) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.URL.Path, "/turn") {
		return nil, errors.New("the connection is lost")
	}
	return m.RoundTripper.RoundTrip(req)
}

// rushed is a worker with two turns on their way. It has 20 places and runs three jobs. A job ends for each token.
type rushed struct {
	testServer
	next     http.RoundTripper // the server after the replacement
	replaced atomic.Bool
	held     chan chan http.RoundTripper
	tokens   chan struct{}
	running  atomic.Int64
	stop     func()
	// The turns of the two loops, which the transport sent here answers. Only the second carries completions.
	first, second chan http.RoundTripper
}

// rush returns a worker of a server with n jobs. Because of its second type it requests ten jobs, gets them, and has
// room for ten more, for which it sends a turn.
func (s testServer) rush(n int) *rushed {
	s.t.Helper()
	r := &rushed{testServer: s, held: make(chan chan http.RoundTripper), tokens: make(chan struct{})}
	s.submitAll("held", n)
	w := s.worker(worker.Config{Client: over(s.t, &route{RoundTripper: r}), Concurrency: 20})
	worker.Handle(w, "held", func(ctx context.Context, _ *worker.Job[struct{}]) (any, error) {
		r.running.Add(1)
		defer r.running.Add(-1)
		select {
		case <-r.tokens:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, worker.HandlerConfig{ExtendOn: worker.ExtendOnLife})
	worker.Handle(w, "rare", func(context.Context, *worker.Job[struct{}]) (any, error) { return nil, nil },
		worker.HandlerConfig{Concurrency: 10})
	r.stop = s.Run(w)
	r.first = r.turnAfter(0)
	r.second = r.turnAfter(7)
	synctest.Wait()
	return r
}

// turnAfter ends n jobs, and returns the turn that the worker sends then.
func (r *rushed) turnAfter(n int) chan http.RoundTripper {
	r.t.Helper()
	for range n {
		r.tokens <- struct{}{}
	}
	select {
	case turn := <-r.held:
		return turn
	case <-time.After(time.Minute):
		r.t.Fatal("the worker sent no turn")
		return nil
	}
}

func (r *rushed) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case r.replaced.Load():
		return r.next.RoundTrip(req)
	case !strings.HasSuffix(req.URL.Path, "/turn"):
		return r.Transport().RoundTrip(req)
	}
	answer := make(chan http.RoundTripper)
	select {
	case r.held <- answer:
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	select {
	case by := <-answer:
		return by.RoundTrip(req)
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// TestEndsOfTheLastTurnAreSentAfterTheRush denies one turn, which ends the rush, and loses the other.
func TestEndsOfTheLastTurnAreSentAfterTheRush(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		r := s.rush(10)
		r.first <- s.Transport()
		synctest.Wait()
		r.next = mute{s.Transport()}
		r.replaced.Store(true) // the client may repeat the turn
		r.second <- r.next
		s.Advance(10 * time.Second)
		if n := s.unfinished(); n != 3 {
			t.Errorf("the server knows of %d unfinished jobs, want the 3 that run", n)
		}
		close(r.tokens)
		r.stop()
	})
}

// TestWorkerSurvivesTheFailoverToAnOlderServer has two turns on their way while an older server takes over.
func TestWorkerSurvivesTheFailoverToAnOlderServer(t *testing.T) {
	for name, swap := range map[string]bool{"first loop learns it first": false, "second loop learns it first": true} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, s testServer) {
				r := s.rush(200)
				r.next = older{s.Transport()}
				r.replaced.Store(true)
				if swap {
					r.first, r.second = r.second, r.first
				}
				r.first <- r.next
				synctest.Wait()
				r.second <- r.next
				s.Advance(30 * time.Second)
				if n := r.running.Load(); n != 20 {
					t.Fatalf("the worker runs %d jobs with the older server, want 20", n)
				}
				close(r.tokens)
				s.Advance(time.Minute)
				if n := s.unfinished(); n != 0 {
					t.Errorf("%d of 200 jobs are unfinished", n)
				}
				r.stop()
			})
		})
	}
}
