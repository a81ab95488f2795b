// Package node runs a whole Lessor server inside a Go program: store, scheduler and API, with or without a network.
//
//	n, err := node.Open(ctx, node.Config{Data: "./lessor-data"}, nil)
//	…
//	go func() { ended <- n.Run(ctx) }() // or n.Serve(ctx, listener), which also answers HTTP
//	job, err := n.Submit(ctx, "mail", Mail{To: "ann"}, nil)
//	…
//	stop()              // cancels ctx
//	err = <-ended       // nil after a clean stop
//	err = n.Close()
//
// The methods of Node are trusted: they need no token and see all tenants. While the node is starting they wait,
// where HTTP answers 503. To use HTTP without a network, Serve on a Pipe.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	_ "time/tzdata" // schedules name zones, and not every machine has them

	"lessor/internal/alert"
	"lessor/internal/config"
	"lessor/internal/dashboard"
	"lessor/internal/fault"
	"lessor/internal/host"
	"lessor/internal/httpapi"
	"lessor/internal/recovery"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
	"lessor/internal/store/postgres"
	"lessor/internal/store/sqlite"
	"lessor/internal/telemetry"
	"lessor/internal/token"
)

// ErrBroken is wrapped by the errors of Run and Serve when the store can no longer be trusted. The process must end,
// and may start again when the disk works.
var ErrBroken = scheduler.ErrBroken

// Version is the version of this program, set when it is built.
var Version = "dev"

// Node is one server.
type Node struct {
	cfg       config.Config // complete
	log       *slog.Logger
	level     *slog.LevelVar
	store     scheduler.Store
	scheduler *scheduler.Scheduler
	tokens    *token.Book
	telemetry *telemetry.Telemetry
	traces    *telemetry.Traces
	workspace *sentinel.Workspace
	recovery  *recovery.Monitor
	dashboard *dashboard.Dashboard
	api       *httpapi.API
	alerts    *alert.Sender // nil = alerts go only to the store and the log
	first     bool
	admin     [32]byte // hash of the admin token
}

// Open opens the store and prepares the node; nothing runs until Run or Serve. Only one process can open a SQLite
// database; any number of nodes can share a PostgreSQL database. A nil log discards everything; cfg sets the lowest
// level that is logged.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*Node, error) {
	return open(ctx, cfg.settings(), log, sqlite.Config{})
}

// OpenSettings is Open with settings that were read from the configuration file, the environment and flags. Only the
// program lessor calls it: the type of its settings is internal.
func OpenSettings(ctx context.Context, cfg config.Config, log *slog.Logger) (*Node, error) {
	return open(ctx, cfg, log, sqlite.Config{})
}

// open is Open with settings of the SQLite store, which tests choose for speed.
func open(ctx context.Context, cfg config.Config, log *slog.Logger, db sqlite.Config) (*Node, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	n := &Node{cfg: cfg, telemetry: telemetry.New()}
	n.log, n.level = leveled(log, cfg.Telemetry.LogLevel)
	if err := n.openTraces(); err != nil {
		return nil, err
	}
	if err := n.openStore(ctx, db); err != nil {
		return nil, err
	}
	if err := n.openAlerts(); err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	sched, err := n.schedulerConfig()
	if err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	n.scheduler = scheduler.New(n.store, sched)
	n.telemetry.Gauges(n.gauges)
	n.tokens = token.NewBook(n.scheduler.Tokens)
	if err := n.adminToken(ctx); err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	n.tokens.Notify(n.announceAccess)
	if err := n.openWorkspace(); err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	n.dashboard = dashboard.New(dashboard.Config{
		Scheduler: n.scheduler, Tokens: n.tokens, Recovery: n.recovery,
		Log: n.log, Fault: n.fault, Version: Version,
	})
	n.api = httpapi.New(httpapi.Config{
		Scheduler: n.scheduler, Tokens: n.tokens, Telemetry: n.telemetry, Traces: n.traces, Recovery: n.recovery,
		Log: n.log, Level: n.level,
		ListenAddr: cfg.Listen, AuthRequired: cfg.Auth == config.AuthRequired, Hosts: cfg.HTTP.Hosts,
		TrustedProxies: cfg.HTTP.Proxies(),
		PayloadLimit:   int64(cfg.Jobs.PayloadLimit), Version: Version, Pages: n.dashboard.Serve,
	})
	return n, nil
}

func (n *Node) openStore(ctx context.Context, db sqlite.Config) error {
	loc, err := config.ParseStore(n.cfg.Store)
	if err != nil {
		return fmt.Errorf("store %w", err)
	}
	if err := os.MkdirAll(n.cfg.Data, 0o700); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	if loc.Kind == config.PostgreSQL {
		n.store, err = opened(postgres.Open(ctx, postgres.Config{URL: loc.URL}))
	} else {
		db.Path = loc.Path
		n.store, err = opened(sqlite.Open(ctx, db))
	}
	return err
}

// opened returns a store as an interface, which is nil if the store could not be opened.
func opened[S scheduler.Store](s S, err error) (scheduler.Store, error) {
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// schedulerConfig returns the settings of the scheduler.
func (n *Node) schedulerConfig() (scheduler.Config, error) {
	c := n.cfg
	sc := scheduler.Config{
		TTL: c.Lease.TTL, Grace: c.Lease.Grace, Sweep: c.Lease.Sweep,
		Brake:      rules.BrakeConfig{SharePercent: c.Lease.BrakeShare, Min: c.Lease.BrakeMin, Rate: c.Lease.BrakeRate},
		TotalUnits: c.Capacity.TotalUnits, ReserveUnits: c.Capacity.ReserveUnits, Backfill: c.Capacity.Backfill,
		Percent: rules.Percent(c.Capacity.Percent), BusyPoints: busyPoints(c.Capacity.Points),
		TenantCap: c.Tenants.DefaultCap, MaxInterruptions: c.Jobs.MaxInterruptions, MaxMessages: c.Jobs.MaxMessages,
		Journal:   rules.JournalLimits{Entry: int64(c.Jobs.JournalEntry), Job: int64(c.Jobs.JournalLimit)},
		Output:    rules.OutputKeep{Head: int64(c.Output.Head), Tail: int64(c.Output.Tail)},
		Retention: scheduler.Retention{Jobs: c.Retention.Jobs, Audit: c.Retention.Audit},
		Jobs: rules.SubmitConfig{
			MaxAttempts: c.Jobs.MaxAttempts, BackoffFirst: c.Jobs.BackoffFirst, BackoffMax: c.Jobs.BackoffMax,
			PayloadLimit: int(c.Jobs.PayloadLimit),
		},
		FailedJobs: c.Alerts.JobFailed, Circuit: scheduler.CircuitConfig{
			Failures: c.Circuit.Failures,
			Cooldown: c.Circuit.Cooldown,
		},
		Observe: n.observe, Alert: n.alert, Fault: n.fault,
	}
	if c.Capacity.Busy.Set {
		sc.Busy = &c.Capacity.Busy.Rating
		return sc, nil
	}
	sampler, err := host.New()
	if err != nil {
		return sc, fmt.Errorf("measure the host: %w", err)
	}
	sc.Sample = n.sample(sampler)
	return sc, nil
}

// FirstStart reports whether this start created the admin token.
func (n *Node) FirstStart() bool { return n.first }

// Handler returns the handler of the HTTP API. It works while Run or Serve does.
func (n *Node) Handler() http.Handler { return n.api }

// Run works until ctx is done, without a network.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	keep := func(place string, run func(context.Context)) {
		background.Go(func() { fault.Keep(ctx, place, n.fault, run) })
	}
	keep(fault.Tokens, n.refreshTokens)
	if n.alerts != nil {
		keep(fault.Alerts, n.alerts.Run)
	}
	background.Go(func() { n.recovery.Run(ctx) })
	background.Go(func() { n.dashboard.Run(ctx) })
	keep(fault.Traces, n.traces.Run)
	return n.scheduler.Run(ctx)
}

func (n *Node) refreshTokens(ctx context.Context) {
	n.tokens.Run(ctx, func(err error) {
		n.log.Warn("tokens could not be read again; the known ones stay valid", "error", err)
	})
}

// Serve works until ctx is done, answering HTTP on ln, which it closes. It returns nil after a clean stop.
func (n *Node) Serve(ctx context.Context, ln net.Listener) error {
	n.RecordAddress(ln.Addr())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	web := make(chan error, 1)
	// HTTP ends first: the scheduler continues until the last request is answered.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() {
		web <- httpapi.Serve(ctx, ln, n.api)
		stop()
	}()
	err := n.Run(work)
	cancel(err)
	return errors.Join(err, <-web)
}

// Close closes the store and the workspace. Run and Serve must have returned.
func (n *Node) Close() error { return errors.Join(n.store.Close(), n.workspace.Close()) }
