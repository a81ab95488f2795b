package lessortest_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"lessor"
	"lessor/lessortest"
	"lessor/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failing is a test that notes how it failed.
type failing struct {
	testing.TB
	text string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure returns what a method says when it fails.
func failure(t *testing.T, s func(testing.TB) *lessortest.Server, use func(*lessortest.Server)) string {
	t.Helper()
	f := &failing{TB: t}
	server := s(f)
	done := make(chan struct{})
	go func() {
		defer close(done)
		use(server)
	}()
	<-done
	return f.text
}

func TestFailuresCanBeReadWithoutTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := func(tb testing.TB) *lessortest.Server { return lessortest.Start(tb) }
		text := failure(t, start, func(s *lessortest.Server) { s.AssertState(s.Submit("mail", nil), lessor.Completed) })
		for _, want := range []string{"of type mail is queued, want completed", "queued by", "No worker has asked"} {
			if !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
				t.Errorf("want %q in:\n%s", want, text)
			}
		}
		text = failure(t, start,
			func(s *lessortest.Server) { s.WaitFor(s.Submit("mail", nil), lessor.Failed, lessor.Expired) })
		if !strings.Contains(text, "is queued after 1h") || !strings.Contains(text, "want it to be failed or expired") {
			t.Errorf("not readable:\n%s", text)
		}
		text = failure(t, start, func(s *lessortest.Server) { s.Expire(lessor.LeaseID{}) })
		if !strings.Contains(text, "no live lease") {
			t.Errorf("not readable:\n%s", text)
		}
	})
}

// hold leases one job of each type by hand.
func hold(t *testing.T, s *lessortest.Server, workerID, jobType string) lessor.Lease {
	t.Helper()
	s.Submit(jobType, nil)
	grants, denial, err := s.Client().Request(t.Context(),
		lessor.LeaseRequest{WorkerID: &workerID, Types: []string{jobType}})
	if err != nil || denial != nil {
		t.Fatalf("request: %v, %v", denial, err)
	}
	return grants[0].Lease
}

func TestExpireEndsOneLeaseAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lessortest.Start(t)
		doomed, other := hold(t, s, "w", "a"), hold(t, s, "w", "b")
		ctx, stop := context.WithCancel(t.Context())
		beats := make(chan struct{})
		go func() {
			defer close(beats)
			for ctx.Err() == nil {
				_, err := s.Client().HeartbeatAll(t.Context(), "w", []lessor.LeaseID{doomed.ID, other.ID})
				if err != nil {
					t.Error(err)
				}
				time.Sleep(20 * time.Second)
			}
		}()
		start := time.Now()
		s.Expire(doomed.ID)
		if took := time.Since(start); took < time.Minute || took > 62*time.Second {
			t.Errorf("the lease ran out after %s, want its ttl of a minute", took)
		}
		stop()
		<-beats
		answers, err := s.Client().HeartbeatAll(t.Context(), "w", []lessor.LeaseID{doomed.ID, other.ID})
		if err != nil || lessor.CodeOf(answers[0].Err) != lessor.CodeLeaseNotFound || answers[1].Err != nil {
			t.Errorf("the answers are %+v, %v; want only the first lease to be over", answers, err)
		}
	})
}

// TestExpireEndsTheLeaseOfAJobThatJournals has a handler whose entries extend its lease, as heartbeats do. None is lost
// in silence.
func TestExpireEndsTheLeaseOfAJobThatJournals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lessortest.Start(t)
		w, err := worker.New(worker.Config{Client: s.Client(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		appended := 0
		worker.Handle(w, "steps", func(ctx context.Context, job *worker.Job[mail]) (any, error) {
			for job.Attempt == 1 {
				if err := job.Journal().Append(ctx, fmt.Sprint("step-", appended), "step", nil); err != nil {
					return nil, err
				}
				appended++
				time.Sleep(15 * time.Second)
			}
			return nil, nil
		})
		s.Run(w)
		id := s.Submit("steps", nil)
		lease := s.WaitForLease(id)
		s.Advance(20 * time.Second)
		start := time.Now()
		s.Expire(lease.ID)
		if took := time.Since(start); took > 62*time.Second {
			t.Errorf("the lease ran out after %s, want its ttl of a minute", took)
		}
		s.WaitFor(id, lessor.Completed)
		if n := len(s.Journal(id)); n != appended || n == 0 {
			t.Errorf("the journal has %d entries, and %d were acknowledged", n, appended)
		}
	})
}

func TestKilledWorkerReachesNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lessortest.Start(t)
		ended := make(chan error, 1)
		go func() {
			_, _, err := s.Client().Request(context.Background(),
				lessor.LeaseRequest{WorkerID: new("dead"), WaitMS: new(int64(30_000))})
			ended <- err
		}()
		synctest.Wait()
		s.KillWorker("dead")
		if err := <-ended; err == nil {
			t.Error("a call that was under way was answered")
		}
		id := s.Submit("a", nil)
		s.Advance(time.Minute)
		s.AssertState(id, lessor.Queued)
		hold(t, s, "alive", "b")
	})
}

func TestRestartKeepsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lessortest.Start(t)
		id := s.Submit("a", nil)
		start := time.Now()
		s.Restart(time.Minute)
		s.AssertState(id, lessor.Queued)
		if took := time.Since(start); took < time.Minute {
			t.Errorf("the restart took %s, want a minute", took)
		}
	})
}

// unfinished notes what Run says of a worker that left something behind.
type unfinished struct {
	testing.TB
	text string
}

func (u *unfinished) Errorf(format string, args ...any) { u.text += fmt.Sprintf(format, args...) }

func TestWorkerThatLeavesSomethingBehindFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unfinished{TB: t}
		s := lessortest.Start(u)
		w, err := worker.New(worker.Config{
			Client: s.Client(), Log: slog.New(slog.DiscardHandler), DrainTimeout: -1,
			KillGrace: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		began, free := make(chan struct{}), make(chan struct{})
		worker.Handle(w, "mule", func(context.Context, *worker.Job[mail]) (any, error) {
			close(began)
			<-free
			return nil, nil
		})
		stop := s.Run(w)
		s.Submit("mule", nil)
		<-began
		stop()
		close(free)
		if !strings.Contains(u.text, "1 handlers did not return") {
			t.Errorf("the test failed with %q", u.text)
		}
	})
}
