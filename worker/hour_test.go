package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/worker"
)

// badNetwork stalls calls and loses answers, at most once in half a second, and not while clients find a server again
// that was down: a lease whose heartbeats are all lost would end.
type badNetwork struct {
	http.RoundTripper
	mu     sync.Mutex
	fair   time.Time // there is no fault before
	stalls int
	losses int
}

func (n *badNetwork) RoundTrip(req *http.Request) (*http.Response, error) {
	stalls, loses := n.roll()
	if stalls {
		time.Sleep(rand.N(200 * time.Millisecond))
	}
	resp, err := n.RoundTripper.RoundTrip(req)
	switch {
	case err != nil:
		n.mu.Lock()
		n.fair = time.Now().Add(time.Second)
		n.mu.Unlock()
	case loses:
		resp.Body.Close()
		return nil, errors.New("the answer was lost")
	}
	return resp, err
}

// roll decides whether a call stalls or loses its answer.
func (n *badNetwork) roll() (stalls, loses bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Now().Before(n.fair) {
		return false, false
	}
	switch dice := rand.IntN(100); {
	case dice < 10:
		stalls = true
		n.stalls++
	case dice < 20:
		loses = true
		n.losses++
	default:
		return false, false
	}
	n.fair = time.Now().Add(500 * time.Millisecond)
	return stalls, loses
}

// attempts is what happened to the attempts of one job.
type attempts struct {
	kind    string
	returns time.Time // of the last handler that stops when it is asked to
	lost    int       // attempts stopped for a lost lease although they beat
	stopped int       // attempts stopped after they fell silent
}

// handlers runs the handlers of the test and notes what happens to them.
type handlers struct {
	t  *testing.T
	mu sync.Mutex
	of map[lessor.JobID]*attempts
}

const (
	hourTTL   = 2 * time.Second
	hourGrace = 3 * time.Second
)

func (w *handlers) handle(ctx context.Context, job *worker.Job[struct{ Kind string }]) (any, error) {
	w.mu.Lock()
	l := w.of[job.ID]
	if l == nil {
		l = &attempts{kind: job.Payload.Kind}
		w.of[job.ID] = l
	}
	if l.kind != "stubborn" && time.Now().Before(l.returns) {
		w.t.Errorf("attempt %d of job %s began while the one before was still running", job.Attempt, job.ID)
	}
	l.returns = time.Now().Add(24 * time.Hour)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		l.returns = time.Now()
		w.mu.Unlock()
	}()
	beating, done := context.WithTimeout(ctx, 2*time.Second+rand.N(40*time.Second))
	defer done()
	_ = beatUntil(beating, job.Beat, 50*time.Millisecond+rand.N(550*time.Millisecond))
	if errors.Is(context.Cause(ctx), worker.ErrLeaseLost) {
		w.mu.Lock()
		l.lost++
		w.mu.Unlock()
		return nil, ctx.Err()
	}
	if ctx.Err() != nil || job.Attempt > 1 || l.kind == "steady" {
		return job.Attempt, nil
	}
	<-ctx.Done()
	w.mu.Lock()
	l.stopped++
	w.mu.Unlock()
	if l.kind == "stubborn" {
		time.Sleep(hourGrace + time.Second)
		return job.Attempt, nil
	}
	return nil, ctx.Err()
}

// TestHourOfAThousandLeases runs for a part of an hour, and for a whole one with LESSOR_CHAOS=full.
func TestHourOfAThousandLeases(t *testing.T) {
	length := time.Minute
	if os.Getenv("LESSOR_CHAOS") == "full" {
		length = time.Hour
	}
	synctest.Test(t, func(t *testing.T) {
		s := wideServer(t, 1000, hourTTL)
		net := &badNetwork{RoundTripper: s.Transport()}
		w := s.worker(worker.Config{
			Client: over(t, &route{RoundTripper: net}), Concurrency: 1000,
			KillGrace: hourGrace,
		})
		d := &handlers{t: t, of: map[lessor.JobID]*attempts{}}
		worker.Handle(w, "hour", d.handle)
		stop := s.Run(w)
		restarts := 0
		for start := time.Now(); time.Since(start) < length; {
			s.refill(1100 - s.unfinished())
			s.Advance(5*time.Second + rand.N(10*time.Second))
			s.Restart(rand.N(500 * time.Millisecond))
			restarts++
		}
		for s.unfinished() > 0 {
			s.Advance(time.Second)
		}
		stop()
		d.check(s)
		t.Logf("%d jobs, %d restarts, %d stalls, %d lost answers", len(d.of), restarts, net.stalls, net.losses)
	})
}

// refill submits n jobs of which a few hang, and a few of these do not stop when asked.
func (s testServer) refill(n int) {
	page := make([]lessor.Submission, max(n, 0))
	for i := range page {
		kind := "steady"
		switch rand.IntN(100) {
		case 0, 1, 2, 3, 4:
			kind = "hangs"
		case 5:
			kind = "stubborn"
		}
		page[i] = lessor.Submission{Type: new("hour"), Payload: []byte(fmt.Sprintf(`{"Kind":%q}`, kind))}
	}
	for page := range slices.Chunk(page, 1000) {
		if _, err := s.Client().SubmitBatch(context.Background(), page); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s testServer) unfinished() int {
	st, err := s.Client().Status(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	waiting := 0
	for _, state := range []lessor.State{lessor.Expired, lessor.Failed} {
		for job, err := range s.Client().AllJobs(context.Background(), lessor.JobFilter{State: state}) {
			if err != nil {
				s.t.Fatal(err)
			}
			if !job.RetryAt.IsZero() {
				waiting++
			}
		}
	}
	return st.QueueDepth.Normal + st.ActiveLeases + waiting
}

func (w *handlers) check(s testServer) {
	log := s.log.String()
	count := map[string]int{}
	for id, l := range w.of {
		job := s.Job(id)
		count[l.kind]++
		named := strings.Contains(log,
			fmt.Sprintf("kill grace: it keeps its slot, and its result is dropped\" job_id=%s", id))
		attempts, stopped := 1, 0
		if l.kind != "steady" {
			attempts, stopped = 2, 1
		}
		if l.lost != 0 || l.stopped != stopped || job.State != lessor.Completed || job.Attempt != attempts ||
			string(job.Result) != fmt.Sprint(attempts) {
			w.t.Errorf("a %s job lost %d leases while it beat, was stopped %d times, "+
				"and is %s with result %s after attempt %d; want 0, %d, completed with %d",
				l.kind, l.lost, l.stopped, job.State, job.Result, job.Attempt, stopped, attempts)
		}
		if named != (l.kind == "stubborn") {
			w.t.Errorf("a %s job is named as not obeying: %t", l.kind, named)
		}
	}
	if count["steady"] < 1000 || count["hangs"] < 10 || count["stubborn"] == 0 {
		w.t.Errorf("%v are too few jobs to say anything", count)
	}
}
