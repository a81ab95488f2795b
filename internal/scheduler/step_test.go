package scheduler_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/memory"
	"lessor/internal/store/postgres"
	"lessor/internal/store/sqlite"
)

// stepper drives loops that no goroutine runs.
type stepper struct {
	t     *testing.T
	ctx   context.Context
	clock time.Time
}

func (s *stepper) step(n *scheduler.Stepped) time.Duration {
	s.t.Helper()
	wait, err := n.Step(s.ctx)
	if err != nil {
		s.t.Fatalf("step: %v", err)
	}
	return wait
}

// answer steps the loop of n once for a verb, which must succeed.
func (s *stepper) answer(n *scheduler.Stepped, name string, verb func() error) {
	s.t.Helper()
	var err error
	if fault := n.Answer(s.ctx, func() { err = verb() }); fault != nil || err != nil {
		s.t.Fatalf("%s: step: %v, answer: %v", name, fault, err)
	}
}

func (s *stepper) submit(n *scheduler.Stepped) (job lessor.Job) {
	s.t.Helper()
	s.answer(n, "submit", func() error {
		r, err := n.Submit(s.ctx, anybody, lessor.Submission{Type: new("generic")})
		job = r.Job
		return err
	})
	return job
}

func (s *stepper) lease(n *scheduler.Stepped, worker string) (g lessor.Grant) {
	s.t.Helper()
	s.answer(n, "request", func() error {
		grants, denial, err := n.Request(s.ctx, anybody, lessor.LeaseRequest{WorkerID: &worker})
		if denial != nil {
			s.t.Errorf("request by %s was denied: %s", worker, denial.Reason)
		}
		if len(grants) > 0 {
			g = grants[0]
		}
		return err
	})
	return g
}

func (s *stepper) beat(n *scheduler.Stepped, g lessor.Grant) {
	s.t.Helper()
	s.answer(n, "heartbeat", func() error {
		_, err := n.Heartbeat(s.ctx, anybody, g.Lease.ID, lessor.Heartbeat{WorkerID: &g.Lease.WorkerID})
		return err
	})
}

func (s *stepper) complete(n *scheduler.Stepped, g lessor.Grant) {
	s.t.Helper()
	s.answer(n, "complete", func() error {
		done := lessor.Completion{WorkerID: &g.Lease.WorkerID, Status: new("completed")}
		return n.Complete(s.ctx, anybody, g.Lease.ID, done)
	})
}

func (s *stepper) wantState(n *scheduler.Stepped, id lessor.JobID, want lessor.State) {
	s.t.Helper()
	if j, err := n.Job(s.ctx, anybody, id); err != nil || j.State != want {
		s.t.Fatalf("job is %s (%v), want %s", j.State, err, want)
	}
}

// TestLoopIsSteppedByHand leads two jobs through their lives on a clock that only the test moves.
func TestLoopIsSteppedByHand(t *testing.T) {
	s := &stepper{t: t, ctx: t.Context(), clock: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	began := s.clock
	store, err := sqlite.Open(s.ctx, sqlite.Config{
		Path: filepath.Join(t.TempDir(), "lessor.db"), Synchronous: "OFF",
		Now: func() time.Time { return s.clock }, Mono: func() time.Duration { return s.clock.Sub(began) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	n := scheduler.NewStepped(store, config(), func() time.Time { return s.clock })
	s.step(n)

	done := s.submit(n)
	g := s.lease(n, "w")
	s.beat(n, g)
	s.complete(n, g)
	s.wantState(n, done.ID, lessor.Completed)

	lost := s.submit(n)
	expires := s.lease(n, "gone").Lease.ExpiresAt
	for s.clock.Before(expires.Time().Add(-time.Second)) {
		s.clock = s.clock.Add(s.step(n))
	}
	s.wantState(n, lost.ID, lessor.Leased)
	for s.clock.Before(expires.Time().Add(2 * time.Second)) {
		s.clock = s.clock.Add(s.step(n))
	}
	s.wantState(n, lost.ID, lessor.Queued)
	s.complete(n, s.lease(n, "next"))
	s.wantState(n, lost.ID, lessor.Completed)
	s.answer(n, "drift", func() error { return n.Drift(s.ctx) })
}

// TestTwoLoopsAreSteppedOverOneStore has each step of a job's life decided by the other node.
func TestTwoLoopsAreSteppedOverOneStore(t *testing.T) {
	s := &stepper{t: t, ctx: t.Context()}
	url := pool.Database(t)
	var two [2]*scheduler.Stepped
	for i := range two {
		store, err := postgres.Open(s.ctx, postgres.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		two[i] = scheduler.NewStepped(store, config(), time.Now)
		s.step(two[i])
	}
	a, b := two[0], two[1]
	job := s.submit(a)
	g := s.lease(b, "w")
	s.beat(a, g)
	s.complete(b, g)
	s.wantState(a, job.ID, lessor.Completed)
	for _, n := range two {
		s.answer(n, "drift", func() error { return n.Drift(s.ctx) })
	}
}

// between is a Stepper that does something once, before a statement of one node.
type between struct {
	node, point string
	do          func()
}

func (b *between) Reach(node, point string) {
	if do := b.do; do != nil && node == b.node && point == b.point {
		b.do = nil
		do()
	}
}

func (*between) Wait(string, string) {}

func (*between) Fate(string) memory.Fate { return memory.Durable }

// TestHeartbeatThatIsSeenLateKeepsItsLease: a heartbeat that another node took in time is committed after this node
// looked for leases that are over. The lease is judged again once it is locked.
func TestHeartbeatThatIsSeenLateKeepsItsLease(t *testing.T) {
	s := &stepper{t: t, ctx: t.Context(), clock: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return s.clock }
	meanwhile := &between{node: "a", point: "lock leases"}
	db := memory.New(memory.Options{Clock: func() lessor.Instant { return lessor.At(s.clock) }, Stepper: meanwhile})
	a, b := scheduler.NewStepped(db.Open("a"), config(), now), scheduler.NewStepped(db.Open("b"), config(), now)
	step := func() time.Duration { return min(s.step(a), s.step(b)) }
	step()
	job := s.submit(a)
	g := s.lease(a, "w")
	expires := g.Lease.ExpiresAt.Time()
	for wait := step(); s.clock.Add(wait).Before(expires); wait = step() {
		s.clock = s.clock.Add(wait)
	}
	s.clock = expires.Add(time.Millisecond)
	meanwhile.do = func() {
		at := s.clock
		s.clock = expires.Add(-10 * time.Millisecond) // when the other node read the clock
		s.beat(b, g)
		s.clock = at
	}
	s.step(a)
	if meanwhile.do != nil {
		t.Fatal("the lease was not taken for one that is over")
	}
	s.wantState(a, job.ID, lessor.Running)
}
