package recovery

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
)

// world is a monitor beside a real scheduler over a real store, and a real workspace, inside a bubble.
type world struct {
	*scheduler.Scheduler
	t          *testing.T
	ctx        context.Context
	cfg        Config
	sched      scheduler.Config
	dir        string
	open       func(w *world) (scheduler.Store, error)
	pace       time.Duration       // durations of the tests are divided by pace
	step       atomic.Int64        // how far the server's wall clock was set ahead
	ws         *sentinel.Workspace // as the commands have it
	monitor    *Monitor
	halt       func()
	mu         sync.Mutex
	sentAlerts []lessor.Alert
}

var anybody = scheduler.Caller{Actor: "tester"}

// settings are the documented defaults.
func settings() Config {
	return Config{
		Node: "here", Scan: time.Minute, StaleAfter: 2 * time.Minute, DeadAfter: 10 * time.Minute,
		Limit: 30 * time.Minute, Watch: 5 * time.Minute, Poll: 10 * time.Second, ResumedWithin: time.Minute,
		CleanupDelay: 30 * time.Second, Keep: 7 * 24 * time.Hour,
	}
}

func scheduling() scheduler.Config {
	quiet := 0
	return scheduler.Config{
		TTL: time.Minute, Sweep: time.Second, TotalUnits: 100_000, Percent: rules.DefaultPercent,
		Busy: &quiet, BusyPoints: rules.DefaultBusyPoints(), TenantCap: 25, MaxInterruptions: 20,
		Brake: rules.BrakeConfig{SharePercent: 100, Min: 100_000, Rate: 200},
		Jobs: rules.SubmitConfig{
			MaxAttempts: 5, BackoffFirst: time.Second, BackoffMax: 5 * time.Minute,
			PayloadLimit: 256 << 10,
		},
		Random: func() float64 { return 0.5 }, Circuit: scheduler.CircuitConfig{Failures: 5, Cooldown: 5 * time.Minute},
	}
}

// inWorld runs a test on SQLite. Tests that depend on the store run on each: see onEachStore.
func inWorld(t *testing.T, cfg Config, test func(t *testing.T, w *world)) {
	t.Helper()
	inWorldOf(t, cfg, 1, openSQLite, test)
}

func inWorldOf(t *testing.T, cfg Config, pace time.Duration, open func(*world) (scheduler.Store, error),
	test func(t *testing.T, w *world),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, ctx: t.Context(), cfg: cfg, sched: scheduling(), dir: t.TempDir(), open: open, pace: pace}
		w.cfg.TTL = w.sched.TTL
		for _, d := range []*time.Duration{
			&w.cfg.Scan, &w.cfg.StaleAfter, &w.cfg.DeadAfter, &w.cfg.Limit, &w.cfg.Watch, &w.cfg.Poll,
			&w.cfg.ResumedWithin,
			&w.cfg.CleanupDelay, &w.cfg.Keep, &w.cfg.TTL, &w.sched.TTL, &w.sched.Sweep, &w.sched.Jobs.BackoffFirst,
			&w.sched.Jobs.BackoffMax,
		} {
			*d /= pace
		}
		w.cfg.Wall = func() lessor.Instant { return lessor.At(w.wall()) }
		var err error
		if w.ws, err = sentinel.Open(w.workspace()); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = w.ws.Close() }()
		w.start()
		defer func() { w.halt() }()
		test(t, w)
	})
}

func (w *world) workspace() string { return filepath.Join(w.dir, "workspace") }

func (w *world) start() {
	w.t.Helper()
	store, err := w.open(w)
	if err != nil {
		w.t.Fatal(err)
	}
	ws, err := sentinel.Open(w.workspace())
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := w.sched
	cfg.Alert = func(a lessor.Alert) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sentAlerts = append(w.sentAlerts, a)
	}
	w.Scheduler = scheduler.New(store, cfg)
	w.cfg.Scheduler, w.cfg.Workspace = w.Scheduler, ws
	w.monitor = New(w.cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			w.t.Errorf("the scheduler ended with %v", err)
		}
	})
	running.Go(func() { w.monitor.Run(ctx) })
	w.halt = func() {
		cancel()
		running.Wait()
		if err := errors.Join(store.Close(), ws.Close()); err != nil {
			w.t.Error(err)
		}
	}
	synctest.Wait()
}

// restart stops the server, and starts another on the same store after a time.
func (w *world) restart(down time.Duration) {
	w.t.Helper()
	w.halt()
	time.Sleep(down / w.pace)
	w.start()
}

// pass lets time go by, and waits until all goroutines are idle.
func (w *world) pass(d time.Duration) {
	time.Sleep(d / w.pace)
	synctest.Wait()
}

// command is a command under a lease, as its shim shows it.
type command struct {
	w     *world
	grant lessor.Grant
	id    lessor.JobID
	seq   int64
	off   time.Duration // how far its clock is ahead of ours
}

// command submits a job, leases it and writes its first pulse.
func (w *world) command(edit ...func(*lessor.Submission)) *command {
	w.t.Helper()
	sub := lessor.Submission{Type: new("long")}
	for _, e := range edit {
		e(&sub)
	}
	if _, err := w.Submit(w.ctx, anybody, sub); err != nil {
		w.t.Fatal(err)
	}
	return w.take(nil)
}

// take leases the next job and writes the first pulse of its command.
func (w *world) take(edit func(*lessor.LeaseRequest)) *command {
	w.t.Helper()
	r := lessor.LeaseRequest{WorkerID: new("worker"), WorkspaceID: new(w.ws.ID())}
	if edit != nil {
		edit(&r)
	}
	grants, denial, err := w.Request(w.ctx, anybody, r)
	if err != nil || denial != nil {
		w.t.Fatalf("no lease: %+v, %v", denial, err)
	}
	c := &command{w: w, grant: grants[0], id: grants[0].Job.ID}
	c.pulse()
	return c
}

// longTTL asks for a lease that outlives dead_after without a heartbeat.
func longTTL(r *lessor.LeaseRequest) { r.TTLMS = new((2 * time.Hour).Milliseconds()) }

func (c *command) pulse() {
	c.w.t.Helper()
	c.seq++
	c.write(sentinel.Sentinel{
		JobID: c.id, Status: sentinel.Running, LastHeartbeat: lessor.At(time.Now().Add(c.off)), SessionID: "session-1",
		AgentEngine: "agent",
		StartedAt:   c.grant.Lease.IssuedAt, Seq: c.seq, Fence: c.grant.Lease.Fence,
	})
}

func (c *command) write(s sentinel.Sentinel) {
	c.w.t.Helper()
	f, err := c.w.ws.MakeFolder(c.id)
	if err == nil {
		err = errors.Join(f.WriteSentinel(s), f.Close())
	}
	if err != nil {
		c.w.t.Fatal(err)
	}
}

func (c *command) beat() {
	c.w.t.Helper()
	if _, err := c.w.Heartbeat(c.w.ctx, anybody, c.grant.Lease.ID,
		lessor.Heartbeat{WorkerID: new("worker")}); err != nil {
		c.w.t.Fatalf("heartbeat: %v", err)
	}
}

// live lets time go by while the command pulses every 30 s and sends a heartbeat every 20 s.
func (c *command) live(d time.Duration) {
	c.w.t.Helper()
	for d > 0 {
		step := min(10*time.Second, d)
		time.Sleep(step / c.w.pace)
		switch d -= step; {
		case d%(30*time.Second) == 0:
			c.pulse()
		case d%(20*time.Second) == 0:
			c.beat()
		}
	}
	synctest.Wait()
}

func (c *command) folder() string { return filepath.Join(c.w.ws.Path(), "jobs", c.id.String()) }

func (c *command) exit(edit func(*sentinel.Exit)) {
	c.w.t.Helper()
	e := sentinel.Exit{
		JobID: c.id, LeaseID: c.grant.Lease.ID, WorkerID: "worker", Fence: c.grant.Lease.Fence,
		Attempt: c.grant.Job.Attempt,
		Status:  lessor.Completed, Result: []byte(`{"n":1}`),
	}
	if edit != nil {
		edit(&e)
	}
	f, err := c.w.ws.MakeFolder(c.id)
	if err == nil {
		err = errors.Join(f.WriteExit(e), f.Close())
	}
	if err != nil {
		c.w.t.Fatal(err)
	}
}

func (w *world) job(id lessor.JobID) lessor.Job {
	w.t.Helper()
	j, err := w.Job(w.ctx, anybody, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

func (c *command) want(state lessor.State) lessor.Job {
	c.w.t.Helper()
	j := c.w.job(c.id)
	if j.State != state {
		c.w.t.Fatalf("job is %s (%v), want %s", j.State, text(j.Error), state)
	}
	return j
}

// wantEnd fails unless the job's attempt ended with the error why.
func (c *command) wantEnd(why string) {
	c.w.t.Helper()
	if j := c.w.job(c.id); text(j.Error) != why {
		c.w.t.Fatalf("job is %s with the error %q, want %q", j.State, text(j.Error), why)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// verdict is the present verdict on the command; "" = it is not listed.
func (c *command) verdict() lessor.HeartbeatStatus {
	c.w.t.Helper()
	for _, j := range c.w.snapshot().Heartbeats().Jobs {
		if j.JobID == c.id {
			return j.Status
		}
	}
	return ""
}

func (c *command) wantVerdict(want lessor.HeartbeatStatus) {
	c.w.t.Helper()
	if got := c.verdict(); got != want {
		c.w.t.Errorf("the command is %q, want %q", got, want)
	}
}

func (c *command) exists() bool {
	_, err := os.Lstat(c.folder())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.w.t.Error(err)
	}
	return err == nil
}

func (w *world) snapshot() Snapshot {
	w.t.Helper()
	s, err := w.monitor.Snapshot(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// wantAlerts fails unless these were raised (+) and cleared (-), in this order, since the last call.
func (w *world) wantAlerts(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []string
	for _, a := range w.sentAlerts {
		sign := "+"
		if a.ClearedAt != 0 {
			sign = "-"
		}
		got = append(got, sign+string(a.Kind))
	}
	w.sentAlerts = nil
	if !slices.Equal(got, want) {
		w.t.Errorf("alerts %q, want %q", got, want)
	}
}

func (w *world) status(id lessor.JobID) lessor.RecoveredStatus {
	w.t.Helper()
	for _, j := range w.snapshot().Status().Jobs {
		if j.JobID == id {
			return j.Status
		}
	}
	return ""
}
