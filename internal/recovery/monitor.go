// Package recovery watches the commands that run in a node's workspace by their sentinels, finds them again after a
// restart, and removes the folders of dead ones. internal/sentinel defines the files of a workspace, internal/rules
// decides what silence means, and the scheduler changes jobs; this package reads files and calls the other two.
//
//	            age < stale_after     ≤ dead_after            more
//	sentinel ──► fresh ─────────────► stale (alert) ────────► dead: the attempt fails, the folder goes 30 s later
//	                 ▲──── a new pulse ──┘
//
//	at a start:  an exit record ─► completed as it says     a fresh pulse or a beat ─► reattached
//	             neither        ─► watched, its lease held  nothing until the end   ─► dead
//
// What it promises:
//   - A sentinel speaks only for the lease whose fence it carries. For a lease that is over it changes no job
//     (TestLowerFenceChangesNothing).
//   - A job whose lease gets heartbeats is at worst stale (TestLeaseWithHeartbeatsIsNeverDead).
//   - No wall clock, the node's, the store's or the command's, keeps a dead command fresh or kills a live one
//     (TestClockSteps, TestServerClockSteps).
//   - A job that ended while no server ran is completed from its exit record, not run again (TestUnseenEndIsCompleted).
//     The record decides, however fresh the sentinel, and is found before the lease ends
//     (TestExitRecordIsFoundBeforeTheLeaseEnds).
//   - A folder is removed only under its lock, after a last check, and nothing outside the workspace (TestCleanup…).
//   - No process id is stored, read or compared (sentinel.TestNoProcessIDs).
//
// One goroutine, Run, checks and acts; a second removes folders, which may take long. node starts Run; httpapi reads
// reports.
package recovery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"lessor"
	"lessor/internal/fault"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
)

// Config configures a Monitor. Node fills it from the settings of the same names.
type Config struct {
	Scheduler *scheduler.Scheduler
	Workspace *sentinel.Workspace
	Node      string             // this node's name in reports
	Log       *slog.Logger       // nil = no log
	Fault     func(*fault.Fault) // receives panics; nil = they are not reported

	Scan, StaleAfter, DeadAfter       time.Duration // sentinel.*
	Limit, Watch, Poll, ResumedWithin time.Duration // recovery.*
	CleanupDelay                      time.Duration
	CleanUnknown                      bool
	Keep                              time.Duration // retention.workspaces
	TTL                               time.Duration // lease.ttl: leases are checked between scans. 0 = they are not

	// Wall is the machine's wall clock; nil = time.Now.
	Wall func() lessor.Instant
}

// Monitor watches one workspace.
type Monitor struct {
	cfg       Config
	sched     *scheduler.Scheduler
	workspace *sentinel.Workspace
	log       *slog.Logger
	sentinels *sentinel.Scanner
	cleaner   *cleaner
	asks      chan ask
	ended     chan struct{} // closed when Run returns

	scanAt   time.Time // of the next scan
	leasesAt time.Time // of the next check of the leases; zero = only with a scan
	retryAt  time.Time // of a check that failed, whatever callers ask for before; zero = the last one succeeded
	rounds   int       // the number of checks

	mu       sync.Mutex // guards what follows: Run writes under it, others read under it
	subjects map[string]*subject
	results  results
	last     lessor.LastScan
	lastAt   time.Time // by the monitor's clock
}

// monitor is the caller of the scheduler.
var monitor = scheduler.Caller{Actor: rules.ActorRecovery}

// New returns a monitor. It does nothing until Run.
func New(cfg Config) *Monitor {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Monitor{
		cfg: cfg, sched: cfg.Scheduler, workspace: cfg.Workspace, log: cfg.Log, sentinels: cfg.Workspace.Sentinels(),
		cleaner: &cleaner{cfg: cfg, wake: make(chan struct{}, 1)}, asks: make(chan ask), ended: make(chan struct{}),
		subjects: map[string]*subject{},
	}
}

// ask is a call that Run makes between two checks.
type ask struct {
	do   func(context.Context) error
	done chan<- error
}

// retryAfter is the pause after a check that failed: the store may be back soon.
const retryAfter = time.Second

// Run watches until ctx is done, while the scheduler runs. It may be called once.
func (m *Monitor) Run(ctx context.Context) {
	defer close(m.ended)
	var cleaning sync.WaitGroup
	defer cleaning.Wait()
	cleaning.Go(func() { fault.Keep(ctx, fault.Cleanup, m.cfg.Fault, m.cleaner.run) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		asks := m.asks
		if !m.results.begun() {
			asks = nil // the first check is a scan
		}
		select {
		case <-ctx.Done():
			return
		case a := <-asks:
			a.done <- m.try(ctx, a.do)
		case <-timer.C:
			err := m.try(ctx, m.step)
			if err != nil && ctx.Err() == nil && m.retryAt.IsZero() {
				m.log.Warn("the workspace could not be checked, trying again", "workspace", m.workspace.Path(), "error",
					err)
			}
			m.retryAt = time.Time{}
			if err != nil {
				m.retryAt = time.Now().Add(retryAfter)
			}
		}
		timer.Reset(time.Until(m.next()))
	}
}

// try calls do, and turns a panic into an error, so that other commands are still watched.
func (m *Monitor) try(ctx context.Context, do func(context.Context) error) error {
	return fault.Try(fault.Recovery, m.cfg.Fault, func() error { return do(ctx) })
}

// next returns when the next check is due.
func (m *Monitor) next() time.Time {
	if !m.retryAt.IsZero() {
		return m.retryAt
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

// step makes the checks that are due: a scan, or the leases and the subjects whose verdict may have changed.
func (m *Monitor) step(ctx context.Context) error {
	now := time.Now()
	if !now.Before(m.scanAt) {
		return m.scan(ctx)
	}
	if !m.leasesAt.IsZero() && !now.Before(m.leasesAt) {
		if err := m.checkLeases(ctx); err != nil {
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
	case len(due) > maxDue:
		return m.scan(ctx)
	}
	return m.checkFolders(ctx, due)
}

// maxDue bounds the folders that are checked one by one. A scan of more is cheaper, because it reads only what changed.
const maxDue = 500

// inRun calls do in the goroutine of Run, which alone may change subjects. The call goes on if ctx ends first.
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

var errStopped = &lessor.Error{
	Code: lessor.CodeUnavailable, Detail: "the monitor of the workspace has stopped", RetryAfter: time.Second,
}

// moment is one reading of two clocks. The monotonic clock measures silence. The wall clock may step: it is only shown
// and compared with the times in files.
type moment struct {
	time.Time
	wall lessor.Instant
}

func (m *Monitor) now() moment { return momentOf(m.cfg) }

func momentOf(cfg Config) moment {
	now := time.Now()
	if cfg.Wall != nil {
		return moment{now, cfg.Wall()}
	}
	return moment{now, lessor.At(now)}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
