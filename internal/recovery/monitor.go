// Package recovery judges the commands that run in a node's workspace by their sentinels, finds them again after a restart,
// and takes away what dead ones leave. internal/sentinel says what lies in a workspace, internal/rules what silence means, and
// the scheduler changes jobs; this package looks, and asks.
//
//	            age < stale_after     ≤ dead_after            more
//	sentinel ──► fresh ─────────────► stale (alert) ────────► dead: the attempt fails, the folder goes 30 s later
//	                 ▲──── a new pulse ──┘
//
//	at a start:  an exit record ─► completed as it says     a fresh pulse or a beat ─► reattached
//	             neither        ─► watched, its lease held  nothing until the end   ─► dead
//
// What it promises:
//   - A sentinel speaks only for the lease whose fence it carries; for one that is over it changes no job (TestLowerFenceChangesNothing).
//   - A job whose lease is beaten is at worst stale (TestBeatenLeaseIsNeverDead).
//   - No wall clock, ours, the store's or the command's, keeps a dead command fresh or kills a live one (TestClockSteps,
//     TestServerClockSteps).
//   - A job that finished while nobody looked is completed from its exit record, not run again (TestUnseenEndIsCompleted). The record
//     is the final word, however fresh the sentinel, and is found before the lease ends (TestExitRecordIsFoundBeforeTheLeaseEnds).
//   - A folder is removed only under its lock, after a last look, and nothing outside the workspace (TestCleanup…).
//   - No process id is stored, read or compared (sentinel.TestNoProcessIDs).
//
// One goroutine, Run, looks and decides; a second removes folders, which may take long. node starts Run; httpapi reads reports.
package recovery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
)

// Config is what a Monitor is made of. Node fills it from the settings of the same names.
type Config struct {
	Scheduler *scheduler.Scheduler
	Workspace *sentinel.Workspace
	Node      string       // this node's name in reports
	Log       *slog.Logger // nil = silent

	Scan, StaleAfter, DeadAfter       time.Duration // sentinel.*
	Limit, Watch, Poll, ResumedWithin time.Duration // recovery.*
	CleanupDelay                      time.Duration
	CleanUnknown                      bool
	Keep                              time.Duration // retention.workspaces
	TTL                               time.Duration // lease.ttl: leases are looked at between scans. 0 = they are not

	// Wall is the machine's wall clock; nil is time.Now's.
	Wall func() lessor.Instant
}

// Monitor watches one workspace.
type Monitor struct {
	cfg       Config
	sched     *scheduler.Scheduler
	workspace *sentinel.Workspace
	log       *slog.Logger
	sentinels *sentinel.Scanner[sentinel.Sentinel]
	cleaner   *cleaner
	asks      chan ask
	ended     chan struct{} // closed when Run returns

	scanAt   time.Time // when the next whole look is due
	leasesAt time.Time // when the next look at the leases is due; zero = none but with the whole
	looks    int       // how many there were
	failed   bool      // the last look failed

	mu       sync.Mutex // Run writes under it; others read
	subjects map[string]*subject
	results  results
	last     lessor.LastScan
	lastAt   time.Time // by our own clock
}

// monitor is who acts on jobs here.
var monitor = scheduler.Caller{Actor: rules.ActorRecovery}

// New returns a monitor. Nothing happens until Run.
func New(cfg Config) *Monitor {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Monitor{
		cfg: cfg, sched: cfg.Scheduler, workspace: cfg.Workspace, log: cfg.Log, sentinels: cfg.Workspace.Sentinels(),
		cleaner: newCleaner(cfg), asks: make(chan ask), ended: make(chan struct{}), subjects: map[string]*subject{},
	}
}

// ask is something to be done between two looks.
type ask struct {
	do   func(context.Context) error
	done chan<- error
}

// againAfter is how long the monitor waits after a look that failed: the store may be back soon.
const againAfter = time.Second

// Run watches until ctx is done. The scheduler must run beside it. To be called once.
func (m *Monitor) Run(ctx context.Context) {
	defer close(m.ended)
	var cleaning sync.WaitGroup
	defer cleaning.Wait()
	cleaning.Go(func() { m.cleaner.run(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		asks := m.asks
		if !m.results.begun() {
			asks = nil // the first look is at everything
		}
		select {
		case <-ctx.Done():
			return
		case a := <-asks:
			a.done <- a.do(ctx)
		case <-timer.C:
			err := m.step(ctx)
			if err != nil && ctx.Err() == nil && !m.failed {
				m.log.Warn("the workspace could not be looked at, trying again", "workspace", m.workspace.Path(), "error", err)
			}
			m.failed = err != nil
		}
		timer.Reset(time.Until(m.next(time.Now())))
	}
}

// next is when the monitor wants to look again.
func (m *Monitor) next(now time.Time) time.Time {
	if m.failed {
		return now.Add(againAfter)
	}
	next := m.scanAt
	if !m.leasesAt.IsZero() {
		next = earlier(next, m.leasesAt)
	}
	for _, s := range m.subjects {
		if !s.next.IsZero() && s.next.Before(next) {
			next = s.next
		}
	}
	return next
}

// step looks at what is due: everything, or the leases, and those whose verdict may have changed.
func (m *Monitor) step(ctx context.Context) error {
	now := time.Now()
	if !now.Before(m.scanAt) {
		return m.scan(ctx)
	}
	if !m.leasesAt.IsZero() && !now.Before(m.leasesAt) {
		if err := m.lookAtLeases(ctx); err != nil {
			return err
		}
	}
	var due []*subject
	for _, s := range m.subjects {
		if !s.next.IsZero() && !s.next.After(now) {
			due = append(due, s)
		}
	}
	switch {
	case len(due) == 0:
		return nil
	case len(due) > mostDue:
		return m.scan(ctx)
	}
	return m.lookAt(ctx, due)
}

// mostDue is how many folders are looked at one by one. A scan is cheaper for more: it reads only what changed.
const mostDue = 500

// inRun does something in the goroutine that watches, which alone may change what is known. It is done to its end also if ctx ends first.
func (m *Monitor) inRun(ctx context.Context, do func(context.Context) error) error {
	done := make(chan error, 1)
	select {
	case m.asks <- ask{do, done}:
	case <-m.ended:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errStopped = &lessor.Error{Code: lessor.CodeUnavailable, Detail: "the monitor of the workspace has stopped", RetryAfter: time.Second}
