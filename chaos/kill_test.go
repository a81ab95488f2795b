package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"lessor"
	"lessor/client"
)

// run is the work that is done while the server is killed repeatedly.
type run struct {
	t *testing.T
	c *client.Client

	mu    sync.Mutex
	acked []lessor.JobID
	ended map[lessor.JobID]int // acknowledged completions
}

// TestKilledServerLosesNothing submits and works for ten seconds while the server is killed ten times. Every
// acknowledged job then ends exactly once, and a lost lease explains every attempt beyond the first.
func TestKilledServerLosesNothing(t *testing.T) {
	s := start(t, "LESSOR_LEASE_TTL=2s", "LESSOR_CAPACITY_BUSY=0")
	r := &run{t: t, c: s.client(), ended: map[lessor.JobID]int{}}
	submitting, stopSubmitting := context.WithCancel(t.Context())
	working, stopWorking := context.WithCancel(t.Context())
	defer stopWorking()
	defer stopSubmitting()
	var submitters, workers sync.WaitGroup
	for i := range 4 {
		submitters.Go(func() { r.submit(submitting, i) })
		workers.Go(func() { r.work(working, fmt.Sprintf("worker-%d", i)) })
	}
	for range 10 {
		time.Sleep(500*time.Millisecond + rand.N(500*time.Millisecond))
		s.kill()
		s.start()
	}
	stopSubmitting()
	submitters.Wait()
	r.drain()
	stopWorking()
	workers.Wait()
	r.check()
}

func (r *run) submit(ctx context.Context, submitter int) {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%d-%d", submitter, n)
		for ctx.Err() == nil { // until the server acknowledges it; the key makes repeating safe
			j, err := r.c.Submit(ctx, "kill", nil, &lessor.SubmitOptions{IdempotencyKey: key, MaxAttempts: 50})
			if err != nil {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			r.mu.Lock()
			r.acked = append(r.acked, j.Job.ID)
			r.mu.Unlock()
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (r *run) work(ctx context.Context, name string) {
	for ctx.Err() == nil {
		request := lessor.LeaseRequest{WorkerID: &name, WaitMS: new(int64(1000)), MaxLeases: new(int64(5))}
		grants, _, err := r.c.Request(ctx, request)
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		for _, g := range grants {
			r.finish(ctx, name, g)
		}
	}
}

// finish completes a lease, repeating until the server accepts or refuses.
func (r *run) finish(ctx context.Context, name string, g lessor.Grant) {
	for ctx.Err() == nil {
		err := r.c.Complete(ctx, g.Lease.ID, lessor.Completion{WorkerID: &name, Status: new("completed")})
		if err == nil {
			r.mu.Lock()
			r.ended[g.Job.ID]++
			r.mu.Unlock()
			return
		}
		if lessor.CodeOf(err) == lessor.CodeLeaseNotFound {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// drain waits until nothing is queued or leased.
func (r *run) drain() {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		st, err := r.c.Status(r.t.Context())
		if err == nil && st.ActiveLeases == 0 && st.QueueDepth.Normal == 0 {
			return
		}
	}
	r.t.Fatal("the queue did not drain in 30 s")
}

func (r *run) check() {
	r.t.Helper()
	if len(r.acked) < 200 {
		r.t.Errorf("only %d jobs were acknowledged, too few for a conclusion", len(r.acked))
	}
	extra := 0
	for _, id := range r.acked {
		j, err := r.c.Job(r.t.Context(), id)
		if err != nil || j.State != lessor.Completed {
			r.t.Fatalf("acknowledged job %v is %s (%v), want completed", id, j.State, err)
		}
		if r.ended[id] > 1 {
			r.t.Errorf("job %v was completed %d times", id, r.ended[id])
		}
		lost := 0
		for e, err := range r.c.AllEvents(r.t.Context(), id) {
			if err != nil {
				r.t.Fatal(err)
			}
			if e.To == lessor.Expired || e.Reason == "released" || e.Reason == "client_gone" {
				lost++
			}
		}
		if j.Attempt > 1+lost {
			r.t.Errorf("job %v has %d attempts and %d recorded losses", id, j.Attempt, lost)
		}
		extra += j.Attempt - 1
	}
	r.t.Logf("%d jobs acknowledged and completed; %d attempts beyond the first", len(r.acked), extra)
}
