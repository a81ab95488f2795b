package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// TestHotPathsAllocateLittle bounds the allocations of the hot calls, each from its request to its answer, with
// scheduler and store. Counts do not depend on the speed of the machine. A bound leaves a quarter for the runtime and
// for the loop, which may commit something else meanwhile; raise one only with a reason.
func TestHotPathsAllocateLittle(t *testing.T) {
	s := start(t)
	ids := hold(t, s, 90)
	submission := `{"type":"x","payload":{"customer":"c-1","order":4711}}`
	for _, c := range []struct {
		name, path string
		body       func() string
		most       float64
	}{
		{"heartbeat", "/leases/" + ids[0] + "/heartbeat", text(`{"worker_id":"w"}`), 70},
		{
			"90 heartbeats", "/leases/heartbeat",
			text(`{"worker_id":"w","lease_ids":["` + strings.Join(ids, `","`) + `"]}`), 450,
		},
		{"denied request", "/leases/request", text(`{"worker_id":"w","types":["none"]}`), 76},
		{"submission", "/jobs", text(submission), 70},
		{
			"100 submissions", "/jobs/batch",
			text(`{"jobs":[` + strings.Repeat(submission+",", 99) + submission + `]}`), 1100,
		},
		{"turn that completes and requests one", "/leases/turn", turns(t, s), 220},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &nothing{header: http.Header{}}
			got := testing.AllocsPerRun(50, func() {
				clear(w.header)
				s.ServeHTTP(w, request(http.MethodPost, scheduling+c.path, c.body()))
			})
			if w.status >= 300 || got > c.most {
				t.Errorf("answer %d after %.0f allocations, want success and at most %.0f", w.status, got, c.most)
			}
		})
	}
}

func text(s string) func() string { return func() string { return s } }

// hold returns the leases of n jobs, held by worker w.
func hold(t *testing.T, s *server, n int64) (ids []string) {
	t.Helper()
	subs := make([]lessor.Submission, n)
	for i := range subs {
		subs[i] = lessor.Submission{Type: new("held")}
	}
	if _, err := s.scheduler.SubmitBatch(t.Context(), scheduler.Caller{}, subs); err != nil {
		t.Fatal(err)
	}
	grants, denial, err := s.scheduler.Request(t.Context(), scheduler.Caller{}, lessor.LeaseRequest{
		WorkerID: new("w"), Types: []string{"held"}, MaxLeases: &n,
	})
	if err != nil || denial != nil || len(grants) != int(n) {
		t.Fatalf("%d grants: %v, %v", len(grants), denial, err)
	}
	for _, g := range grants {
		ids = append(ids, g.Lease.ID.String())
	}
	return ids
}

// turns returns the bodies of turns, each of which completes the lease of a job and requests another.
func turns(t *testing.T, s *server) func() string {
	subs := make([]lessor.Submission, 100)
	for i := range subs {
		subs[i] = lessor.Submission{Type: new("turned")}
	}
	if _, err := s.scheduler.SubmitBatch(t.Context(), scheduler.Caller{}, subs); err != nil {
		t.Fatal(err)
	}
	n := 0
	return func() string {
		n++
		grants, _, err := s.scheduler.Request(t.Context(), scheduler.Caller{}, lessor.LeaseRequest{
			WorkerID: new("w"), Types: []string{"turned"}, RequestID: new(fmt.Sprint(n)),
		})
		if err != nil || len(grants) != 1 {
			t.Fatalf("there is no lease to complete: %v", err)
		}
		return fmt.Sprintf(`{"worker_id":"w","complete":[{"lease_id":%q,"status":"completed"}],
			"request":{"types":["turned"],"request_id":"%d","view":"work"}}`, grants[0].Lease.ID, n+1)
	}
}

// nothing is a connection that keeps only the status of an answer.
type nothing struct {
	header http.Header
	status int
}

func (n *nothing) Header() http.Header            { return n.header }
func (n *nothing) WriteHeader(status int)         { n.status = status }
func (*nothing) Write(b []byte) (int, error)      { return io.Discard.Write(b) }
func (*nothing) SetReadDeadline(time.Time) error  { return nil }
func (*nothing) SetWriteDeadline(time.Time) error { return nil }
