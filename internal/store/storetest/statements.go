package storetest

import (
	"context"
	"math"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// Statements bounds the statements that each hot call costs, its transaction included, when no other call shares its
// commit. count returns how many statements the store has run so far; most has a bound for each call. A call is
// repeated and the least count is taken, because the scheduler may do something else meanwhile.
func Statements(t *testing.T, store scheduler.Store, count func() int, most map[string]int) {
	s := serve(t, store)
	for _, c := range s.hotCalls() {
		least := math.MaxInt
		for range 10 {
			if c.before != nil {
				c.before()
			}
			began := count()
			if err := c.call(); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			least = min(least, count()-began)
		}
		t.Logf("%s: %d statements", c.name, least)
		if bound, ok := most[c.name]; !ok || least > bound {
			t.Errorf("%s takes %d statements, want at most %d", c.name, least, bound)
		}
	}
}

// served is a scheduler over the store under test.
type served struct {
	*scheduler.Scheduler
	t    *testing.T
	held []lessor.Grant
}

func serve(t *testing.T, store scheduler.Store) *served {
	s := &served{t: t, Scheduler: scheduler.New(store, scheduler.Config{
		TTL: time.Hour, Sweep: time.Minute, TotalUnits: 1000, Percent: rules.DefaultPercent, Busy: new(0),
		BusyPoints: rules.DefaultBusyPoints(), TenantCap: 1000, MaxInterruptions: 20, MaxMessages: 1000,
		Jobs: rules.SubmitConfig{
			MaxAttempts: 5, BackoffFirst: time.Second, BackoffMax: time.Minute, PayloadLimit: 256 << 10,
		},
		Random: func() float64 { return 0.5 }, Circuit: scheduler.CircuitConfig{Failures: 5, Cooldown: time.Minute},
	})}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	for s.Ready() != nil {
		select {
		case <-time.After(time.Millisecond):
		case err := <-done:
			t.Fatalf("run: %v", err)
		}
	}
	return s
}

type hotCall struct {
	name   string
	before func() // what the call needs; its statements do not count
	call   func() error
}

// hotBatch is the number of jobs or leases in a batch.
const hotBatch = 100

func (s *served) hotCalls() []hotCall {
	ctx, worker, status := s.t.Context(), "w", "completed"
	seconds := int64(3600)
	_, _, err := s.PutDefinition(ctx, anyone, "hourly", lessor.Envelope{
		JobID: new("hourly"), TenantID: new(tenant(1).String()), HandlerID: new("ticked"), LockKey: new("hourly"),
		Schedule: &lessor.ScheduleAsk{Type: new("interval"), Seconds: &seconds},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	var batch []string
	beat := func() error {
		_, err := s.Heartbeat(ctx, anyone, s.held[0].Lease.ID, lessor.Heartbeat{WorkerID: &worker})
		return err
	}
	return []hotCall{
		{"submit", nil, func() error { return s.submit(1) }},
		{"submit 100", nil, func() error { return s.submit(hotBatch) }},
		{"request", func() { s.must(s.submit(1)) }, func() error { return s.request(1) }},
		{"first heartbeat", func() { s.hold(1) }, beat},
		{"heartbeat", nil, beat},
		{"100 heartbeats", func() {
			if batch != nil {
				return
			}
			s.hold(hotBatch)
			for _, g := range s.held {
				batch = append(batch, g.Lease.ID.String())
			}
		}, func() error {
			_, err := s.HeartbeatAll(ctx, anyone, worker, batch)
			return err
		}},
		{"complete", func() { s.hold(1) }, func() error {
			return s.Complete(ctx, anyone, s.held[0].Lease.ID, lessor.Completion{WorkerID: &worker, Status: &status})
		}},
		{"turn", func() { s.must(s.submit(1)); s.hold(1) }, func() error {
			_, err := s.Turn(ctx, anyone, lessor.Turn{
				WorkerID: &worker, Complete: []lessor.LeaseCompletion{
					{LeaseID: new(s.held[0].Lease.ID.String()), Status: &status},
				}, Request: &lessor.TurnRequest{Types: []string{"hot"}},
			})
			return err
		}},
		{"tick by hand", nil, func() error {
			_, err := s.Trigger(ctx, anyone, "hourly", nil)
			return err
		}},
	}
}

var anyone = scheduler.Caller{Actor: "tester"}

func (s *served) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *served) submit(n int) error {
	subs := make([]lessor.Submission, n)
	for i := range subs {
		subs[i] = lessor.Submission{Type: new("hot")}
	}
	_, err := s.SubmitBatch(s.t.Context(), anyone, subs)
	return err
}

func (s *served) request(n int64) (err error) {
	s.held, _, err = s.Request(s.t.Context(), anyone, lessor.LeaseRequest{
		WorkerID: new("w"), Types: []string{"hot"}, MaxLeases: &n,
	})
	return err
}

// hold submits n jobs and takes n leases.
func (s *served) hold(n int) {
	s.t.Helper()
	s.must(s.submit(n))
	s.must(s.request(int64(n)))
	if len(s.held) != n {
		s.t.Fatalf("%d leases are held, want %d", len(s.held), n)
	}
}
