package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/client"
)

// day runs many workers for a day, of which some crash, and counts what it saw.
type day struct {
	*client.Client
	t     *testing.T
	rnd   *rand.Rand
	mu    sync.Mutex
	until map[lessor.LeaseID]lessor.Instant // when each held lease ends without another heartbeat
	runs  int
	lost  int // leases whose worker crashed
	// leases that expired; those that did so early, and more than 2 s late
	expired, early, late int
}

// TestDayOfWorkers runs a whole node, with its HTTP API, for a day of twenty workers. No lease may expire early or more
// than 2 s late, and capacity is never exceeded.
func TestDayOfWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Data: t.TempDir()}
		cfg.Capacity.TotalUnits, cfg.Capacity.ReserveUnits = 30, 2
		cfg.Capacity.Busy = new(0)
		n, c := servePipe(t, cfg)
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		d := &day{Client: c, t: t, rnd: rand.New(rand.NewPCG(1, 2)), until: map[lessor.LeaseID]lessor.Instant{}}
		var all sync.WaitGroup
		all.Go(func() { d.watch(ctx) })
		all.Go(func() { d.submitAll(ctx) })
		for i := range 20 {
			all.Go(func() { d.work(ctx, fmt.Sprintf("worker-%d", i)) })
		}
		all.Go(func() { d.checkCapacity(ctx, 28) })
		all.Wait()
		if err := n.scheduler.Drift(t.Context()); err != nil {
			t.Errorf("the fold drifted: %v", err)
		}
		t.Logf("%d runs, %d leases lost with their workers", d.runs, d.lost)
		if d.runs < 3000 || d.lost < 100 || d.expired < d.lost/2 {
			t.Errorf("%d runs, %d lost leases and %d that expired; want at least 3000, 100 and half as many as lost",
				d.runs, d.lost, d.expired)
		}
		if d.early > 0 || d.late > 0 {
			t.Errorf("%d leases expired early and %d more than 2 s late, want none", d.early, d.late)
		}
	})
}

// chance returns true once in n times.
func (d *day) chance(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(n) == 0
}

func (d *day) between(least, most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return least + time.Duration(d.rnd.Int64N(int64(most-least)))
}

// sleep waits for d, and returns false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (d *day) submitAll(ctx context.Context) {
	for sleep(ctx, d.between(5*time.Second, 30*time.Second)) {
		units := 1 + int(d.between(0, 3))
		if _, err := d.Submit(ctx, "generic", nil, &lessor.SubmitOptions{Units: units}); err != nil &&
			ctx.Err() == nil {
			d.t.Errorf("submit: %v", err)
		}
	}
}

func (d *day) work(ctx context.Context, worker string) {
	for ctx.Err() == nil {
		grants, denial, err := d.Request(ctx, lessor.LeaseRequest{WorkerID: &worker, WaitMS: new(int64(30_000))})
		switch {
		case err != nil:
			if ctx.Err() == nil {
				d.t.Errorf("request: %v", err)
			}
			return
		case denial != nil:
			sleep(ctx, time.Duration(denial.RetryAfterMS)*time.Millisecond)
		default:
			d.run(ctx, grants[0])
		}
	}
}

// run works on a job until its end, or until its worker crashes.
func (d *day) run(ctx context.Context, g lessor.Grant) {
	d.setEnd(g.Lease.ID, g.Lease.ExpiresAt)
	crashes := d.chance(10)
	for left := d.between(10*time.Second, 300*time.Second); left > 0; left -= 20 * time.Second {
		a, err := d.Heartbeat(ctx, g.Lease.ID, lessor.Heartbeat{WorkerID: &g.Lease.WorkerID})
		if err != nil {
			if ctx.Err() == nil {
				d.t.Errorf("heartbeat of a worker that was never silent: %v", err)
			}
			return
		}
		d.setEnd(g.Lease.ID, a.ExpiresAt)
		if crashes && d.chance(3) {
			d.mu.Lock()
			d.lost++
			d.mu.Unlock()
			sleep(ctx, d.between(time.Minute, 10*time.Minute))
			return
		}
		if !sleep(ctx, min(left, 20*time.Second)) {
			return
		}
	}
	err := d.Complete(ctx, g.Lease.ID, lessor.Completion{WorkerID: &g.Lease.WorkerID, Status: new("completed")})
	if err != nil && ctx.Err() == nil {
		d.t.Errorf("complete: %v", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs++
	delete(d.until, g.Lease.ID)
}

// setEnd records when a lease ends without another heartbeat.
func (d *day) setEnd(id lessor.LeaseID, until lessor.Instant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until[id] = until
}

// watch compares the time of every expiry with the end of the lease that its worker was told.
func (d *day) watch(ctx context.Context) {
	for e, err := range d.Watch(ctx, "") {
		if err != nil {
			d.t.Errorf("watch: %v", err)
			return
		}
		if e.Gap {
			d.t.Error("the stream of events has a gap, want all events")
		}
		if e.Event.To != lessor.Expired {
			continue
		}
		d.mu.Lock()
		d.expired++
		switch until := d.until[*e.Event.LeaseID]; {
		case e.Event.At < until:
			d.early++
		case e.Event.At > until.Add(2*time.Second):
			d.late++
		}
		d.mu.Unlock()
	}
}

// checkCapacity checks each minute that no more units are leased than are usable.
func (d *day) checkCapacity(ctx context.Context, usable int) {
	for sleep(ctx, time.Minute) {
		st, err := d.Status(ctx)
		if err != nil {
			if ctx.Err() == nil {
				d.t.Errorf("status: %v", err)
			}
			return
		}
		if st.LeasedUnits > usable || st.UsableUnits != usable {
			d.t.Errorf("%d of %d usable units are leased, want %d usable and no more leased", st.LeasedUnits,
				st.UsableUnits, usable)
		}
	}
}
