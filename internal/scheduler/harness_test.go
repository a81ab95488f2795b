package scheduler_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/fault"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/sqlite"
)

// world is a scheduler over a real SQLite store, inside a bubble: time passes only while all goroutines wait.
type world struct {
	*scheduler.Scheduler
	t    *testing.T
	ctx  context.Context
	path string
	cfg  scheduler.Config
	wrap func(scheduler.Store) scheduler.Store
	// clock is what the store's clock says; nil = the time of the bubble.
	clock func() time.Time
	// shared has the scheduler act as one of several nodes.
	shared     bool
	store      scheduler.Store
	halt       func()
	stats      []scheduler.Stats
	sentAlerts []lessor.Alert
	faults     []*fault.Fault
	mu         sync.Mutex
}

// anybody is a caller that may do everything.
var anybody = scheduler.Caller{Actor: "tester"}

func config() scheduler.Config {
	quiet := 0
	return scheduler.Config{
		TTL: time.Minute, Sweep: time.Second, TotalUnits: 100, ReserveUnits: 5, Percent: rules.DefaultPercent,
		Busy: &quiet, BusyPoints: rules.DefaultBusyPoints(), TenantCap: 25, MaxInterruptions: 20, MaxMessages: 1000,
		Brake: rules.BrakeConfig{SharePercent: 30, Min: 10, Rate: 200},
		Jobs: rules.SubmitConfig{
			MaxAttempts: 5, BackoffFirst: time.Second, BackoffMax: 5 * time.Minute, PayloadLimit: 256 << 10,
		},
		Random: func() float64 { return 0.5 }, Circuit: scheduler.CircuitConfig{Failures: 5, Cooldown: 5 * time.Minute},
	}
}

// inWorld runs test in a bubble with a scheduler that is up.
func inWorld(t *testing.T, cfg scheduler.Config, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, ctx: t.Context(), path: filepath.Join(t.TempDir(), "lessor.db"), cfg: cfg}
		w.start()
		defer func() { w.halt() }()
		test(t, w)
	})
}

// start opens the store and runs a scheduler over it.
func (w *world) start() {
	w.t.Helper()
	began := time.Now()
	mono := func() time.Duration { return time.Since(began) }
	store, err := sqlite.Open(w.ctx, sqlite.Config{Path: w.path, Synchronous: "OFF", Now: w.clock, Mono: mono})
	if err != nil {
		w.t.Fatalf("open store: %v", err)
	}
	w.store = store
	if w.wrap != nil {
		w.store = w.wrap(store)
	}
	cfg := w.cfg
	cfg.Observe = func(s scheduler.Stats) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stats = append(w.stats, s)
	}
	cfg.Alert = func(a lessor.Alert) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sentAlerts = append(w.sentAlerts, a)
	}
	cfg.Fault = func(f *fault.Fault) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.faults = append(w.faults, f)
	}
	w.Scheduler = scheduler.New(w.store, cfg)
	if w.shared {
		w.ActAsOneOfSeveral()
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	w.halt = func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run returned %v, want nil after a clean stop", err)
		}
		if err := store.Close(); err != nil {
			w.t.Errorf("close store: %v", err)
		}
	}
	synctest.Wait()
}

// restart stops the scheduler, lets time pass, and starts it again on the same file.
func (w *world) restart(down time.Duration) {
	w.t.Helper()
	w.halt()
	time.Sleep(down)
	w.start()
}

func (w *world) submit(edit func(*lessor.Submission)) lessor.Job {
	w.t.Helper()
	sub := lessor.Submission{Type: new("generic")}
	if edit != nil {
		edit(&sub)
	}
	r, err := w.Submit(w.ctx, anybody, sub)
	if err != nil {
		w.t.Fatalf("submit: %v", err)
	}
	return r.Job
}

// ask requests one lease and returns the grant or the denial.
func (w *world) ask(worker string, edit func(*lessor.LeaseRequest)) (*lessor.Grant, *lessor.Denial) {
	w.t.Helper()
	grants, denial := w.askMany(worker, edit)
	if denial != nil {
		return nil, denial
	}
	return &grants[0], nil
}

func (w *world) askMany(worker string, edit func(*lessor.LeaseRequest)) ([]lessor.Grant, *lessor.Denial) {
	w.t.Helper()
	r := lessor.LeaseRequest{WorkerID: &worker}
	if edit != nil {
		edit(&r)
	}
	grants, denial, err := w.Request(w.ctx, anybody, r)
	if err != nil {
		w.t.Fatalf("request by %s: %v", worker, err)
	}
	return grants, denial
}

// lease requests one lease that must be granted.
func (w *world) lease(worker string, edit func(*lessor.LeaseRequest)) lessor.Grant {
	w.t.Helper()
	g, denial := w.ask(worker, edit)
	if g == nil {
		w.t.Fatalf("request by %s was denied (%s: %s), want a lease", worker, denial.Code, denial.Reason)
	}
	return *g
}

func (w *world) beat(g lessor.Grant) (lessor.HeartbeatAnswer, error) {
	return w.Heartbeat(w.ctx, anybody, g.Lease.ID, lessor.Heartbeat{WorkerID: &g.Lease.WorkerID})
}

func (w *world) mustBeat(g lessor.Grant) lessor.HeartbeatAnswer {
	w.t.Helper()
	a, err := w.beat(g)
	if err != nil {
		w.t.Fatalf("heartbeat of %s: %v", g.Lease.WorkerID, err)
	}
	return a
}

func (w *world) complete(g lessor.Grant, status string) error {
	return w.Complete(w.ctx, anybody, g.Lease.ID, lessor.Completion{WorkerID: &g.Lease.WorkerID, Status: &status})
}

func (w *world) mustComplete(g lessor.Grant, status string) {
	w.t.Helper()
	if err := w.complete(g, status); err != nil {
		w.t.Fatalf("complete as %s: %v", status, err)
	}
}

// mustCompleteAs completes a lease as caller c.
func (w *world) mustCompleteAs(c scheduler.Caller, g lessor.Grant, status string) {
	w.t.Helper()
	done := lessor.Completion{WorkerID: &g.Lease.WorkerID, Status: &status}
	if err := w.Complete(w.ctx, c, g.Lease.ID, done); err != nil {
		w.t.Fatalf("complete as %s: %v", status, err)
	}
}

func (w *world) job(id lessor.JobID) lessor.Job {
	w.t.Helper()
	j, err := w.Job(w.ctx, anybody, id)
	if err != nil {
		w.t.Fatalf("read job: %v", err)
	}
	return j
}

func (w *world) wantState(id lessor.JobID, want lessor.State) lessor.Job {
	w.t.Helper()
	j := w.job(id)
	if j.State != want {
		w.t.Fatalf("job is %s, want %s", j.State, want)
	}
	return j
}

// wantCode fails unless err is a refusal with this code.
func (w *world) wantCode(err error, want lessor.Code) *lessor.Error {
	w.t.Helper()
	e, ok := errors.AsType[*lessor.Error](err)
	if !ok || e.Code != want {
		w.t.Fatalf("got %v, want a refusal %s", err, want)
	}
	return e
}

// noDrift fails if what is kept in memory differs from the tables.
func (w *world) noDrift() {
	w.t.Helper()
	if err := w.Drift(w.ctx); err != nil {
		w.t.Fatalf("the fold drifted: %v", err)
	}
}

func now() lessor.Instant { return lessor.At(time.Now()) }
