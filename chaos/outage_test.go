package chaos

import (
	"fmt"
	"testing"
	"time"

	"lessor"
	"lessor/client"
)

const (
	ttl       = 2 * time.Second
	perWorker = 50
	staying   = 18 // workers that come back
	leaving   = 2  // workers that do not; three would be a mass expiry
)

// TestLeasesSurviveAnOutageOfThreeTTL holds 1,000 leases, kills the server, and leaves it down for three ttl. Workers
// that come back within one ttl after its return have lost nothing, and no job ran twice. Workers that do not come back
// lose their leases after the floor, not before.
func TestLeasesSurviveAnOutageOfThreeTTL(t *testing.T) {
	s := start(t, "LESSOR_LEASE_TTL=2s", "LESSOR_CAPACITY_TOTAL_UNITS=2000", "LESSOR_CAPACITY_BUSY=0")
	c := s.client()
	held := holdAll(t, c, staying+leaving)
	s.kill()
	time.Sleep(3 * ttl)
	s.start()
	back := time.Now()
	beatAll(t, c, held[:staying])
	time.Sleep(ttl / 2)
	beatAll(t, c, held[:staying])
	for _, w := range held[staying:] { // half a ttl after the return, no lease has expired
		wantState(t, c, w.leases[0], lessor.Leased)
	}
	completeAll(t, c, held[:staying])
	for time.Since(back) < ttl+2*time.Second {
		time.Sleep(100 * time.Millisecond)
	}
	for _, w := range held[staying:] {
		for _, g := range w.leases {
			_, err := c.Heartbeat(t.Context(), g.Lease.ID, lessor.Heartbeat{WorkerID: &w.name})
			if lessor.CodeOf(err) != lessor.CodeLeaseNotFound {
				t.Fatalf("a worker that did not come back still has its lease after the floor: %v", err)
			}
		}
	}
	for _, w := range held[:staying] {
		for _, g := range w.leases {
			if j := wantState(t, c, g, lessor.Completed); j.Attempt != 1 {
				t.Fatalf("job %v ran %d times, want once", j.ID, j.Attempt)
			}
		}
	}
}

type holder struct {
	name   string
	leases []lessor.Grant
}

func (h holder) ids() []lessor.LeaseID {
	ids := make([]lessor.LeaseID, len(h.leases))
	for i, g := range h.leases {
		ids[i] = g.Lease.ID
	}
	return ids
}

func holdAll(t *testing.T, c *client.Client, workers int) []holder {
	t.Helper()
	subs := make([]lessor.Submission, workers*perWorker)
	for i := range subs {
		subs[i] = lessor.Submission{Type: new("outage")}
	}
	if _, err := c.SubmitBatch(t.Context(), subs); err != nil {
		t.Fatal(err)
	}
	held := make([]holder, workers)
	for i := range held {
		held[i].name = fmt.Sprintf("worker-%d", i)
		request := lessor.LeaseRequest{WorkerID: &held[i].name, MaxLeases: new(int64(perWorker))}
		grants, d, err := c.Request(t.Context(), request)
		if err != nil || len(grants) != perWorker {
			t.Fatalf("%d grants, %+v, %v; want %d", len(grants), d, err, perWorker)
		}
		held[i].leases = grants
	}
	return held
}

func beatAll(t *testing.T, c *client.Client, held []holder) {
	t.Helper()
	for _, h := range held {
		answers, err := c.HeartbeatAll(t.Context(), h.name, h.ids())
		if err != nil {
			t.Fatalf("heartbeats of %s: %v", h.name, err)
		}
		for _, a := range answers {
			if a.Err != nil {
				t.Fatalf("%s lost a lease to the outage: %v", h.name, a.Err)
			}
		}
	}
}

func completeAll(t *testing.T, c *client.Client, held []holder) {
	t.Helper()
	for _, h := range held {
		ends := make([]lessor.LeaseCompletion, len(h.leases))
		for i, g := range h.leases {
			ends[i] = lessor.LeaseCompletion{LeaseID: new(g.Lease.ID.String()), Status: new("completed")}
		}
		answers, err := c.CompleteAll(t.Context(), h.name, ends)
		if err != nil {
			t.Fatalf("completions of %s: %v", h.name, err)
		}
		for _, a := range answers {
			if a.Err != nil {
				t.Fatalf("a completion of %s was refused: %v", h.name, a.Err)
			}
		}
	}
}

func wantState(t *testing.T, c *client.Client, g lessor.Grant, want lessor.State) lessor.Job {
	t.Helper()
	j, err := c.Job(t.Context(), g.Job.ID)
	if err != nil || j.State != want {
		t.Fatalf("job %v is %s (%v), want %s", g.Job.ID, j.State, err, want)
	}
	return j
}
