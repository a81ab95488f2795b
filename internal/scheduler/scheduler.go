package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"lessor"
	"lessor/internal/batch"
	"lessor/internal/fault"
	"lessor/internal/lanes"
	"lessor/internal/rules"
)

// Config says how a scheduler decides. New fills what is zero with the documented defaults.
type Config struct {
	TTL, Grace       time.Duration
	Sweep            time.Duration // how far behind the end of leases may be noticed, at most
	Brake            rules.BrakeConfig
	TotalUnits       int
	ReserveUnits     int
	Percent          rules.Percent
	Busy             *int // a fixed rating; nil = sampled
	BusyPoints       rules.BusyPoints
	Backfill         bool
	TenantCap        int // leases a named tenant may hold at once
	Jobs             rules.SubmitConfig
	MaxInterruptions int
	Journal          rules.JournalLimits
	Output           rules.OutputKeep
	MaxMessages      int // to one job that its worker has not seen
	Retention        Retention
	Circuit          CircuitConfig // of definitions that do not say
	FailedJobs       bool          // jobs that fail for good raise an alert
	// Alert is called with every alert that was raised or cleared, after its commit, by any goroutine; may be nil.
	Alert func(lessor.Alert)
	// Sample measures the host for the busy rating; nil = no samples.
	Sample func() (lessor.BusyInputs, error)
	// Observe is called after every commit, by any goroutine; may be nil.
	Observe func(Stats)
	// Fault is called with every panic that was caught, by any goroutine; may be nil.
	Fault func(*fault.Fault)
	// Random is uniform in [0, 1); nil = math/rand.
	Random func() float64
}

// CircuitConfig says when circuits open, and for how long.
type CircuitConfig struct {
	Failures int
	Cooldown time.Duration
}

// Stats is what one commit did.
type Stats struct {
	Calls      int
	Took       time.Duration
	Submitted  int
	Granted    int
	Waited     []time.Duration // by each job that was granted, from queued to the grant
	Denied     map[lessor.DenialCode]int
	Retried    int // requests that waited and were tried again
	Beats      int
	Ended      []EndedAttempt
	Ticks      map[lessor.TickOutcome]int
	MassExpiry bool  // the brake was pulled
	Err        error // the commit failed
	Repeated   bool  // it failed in a conflict with another node's commit, and its calls are repeated
}

// EndedAttempt is how an attempt ended, and after how long.
type EndedAttempt struct {
	Outcome rules.Outcome
	Took    time.Duration
}

// Scheduler answers calls over one store. Its fields may be used by every goroutine; those that one goroutine alone may
// touch are in loop, to which it has no pointer.
type Scheduler struct {
	cfg      Config
	store    Store
	calls    *batch.Queue[op]
	channels sync.Pool // of calls that were answered
	name     string    // of this node, among those on one store

	fit       atomic.Int64             // total − reserve, for submissions; valid once handlers is set
	handlers  atomic.Pointer[handlers] // nil = the settings were never read
	workers   workers
	stream    stream
	cancels   cancels
	waits     waits
	sampling  sampling
	idleLanes chan *idleLanes // from scanLoop to the loop

	machine Machine
	pace    Pace // the constants, except for a Manual and in tests; set before Run

	startOnce sync.Once
	started   chan struct{} // closed when status is set for the first time

	mu       sync.Mutex
	status   error // nil = ready
	statusAt time.Time
}

// The bounds of the line of waiting calls, and of one commit.
var (
	lineLimit  = batch.Limit{Calls: 32768, Bytes: 512 << 20} // of which one tenant gets at most half
	batchLimit = batch.Limit{Calls: 2048, Bytes: 1 << 20}
)

// New returns a scheduler over store. Nothing happens until Run.
func New(store Store, cfg Config) *Scheduler { return newScheduler(store, cfg, thisMachine()) }

func newScheduler(store Store, cfg Config, m Machine) *Scheduler {
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	if cfg.Journal == (rules.JournalLimits{}) {
		cfg.Journal = rules.JournalLimits{Entry: 64 << 10, Job: 16 << 20}
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Stats) {}
	}
	if cfg.Alert == nil {
		cfg.Alert = func(lessor.Alert) {}
	}
	if cfg.Fault == nil {
		cfg.Fault = func(*fault.Fault) {}
	}
	cfg.Brake.TTL = cfg.TTL + cfg.Grace
	return &Scheduler{
		cfg: cfg, store: store, status: ErrStarting, machine: m, pace: Pace{}.orConstants(),
		calls: batch.New(lineLimit, op.size), started: make(chan struct{}), name: m.UUID().String(),
		idleLanes: make(chan *idleLanes, 1),
	}
}

// Run answers calls until ctx is done, then refuses those that still wait. It returns nil on a clean stop, and an error
// that wraps ErrBroken when the store can no longer be trusted.
func (s *Scheduler) Run(ctx context.Context) error {
	l := newLoop(s)
	defer l.refuseAll()
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.sample(ctx)
	background.Go(func() { fault.Keep(ctx, fault.Sample, s.cfg.Fault, s.sampleLoop) })
	background.Go(func() { fault.Keep(ctx, fault.Lanes, s.cfg.Fault, s.scanLoop) })
	if err := l.run(ctx); err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	return nil
}

func (s *Scheduler) tenantPolicy(id lessor.TenantID) lanes.Policy {
	if id.IsZero() {
		return lanes.Policy{Weight: 1, Unset: true}
	}
	return lanes.Policy{Weight: 1, Cap: s.cfg.TenantCap, Unset: true}
}
