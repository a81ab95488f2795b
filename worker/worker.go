package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"lessor"
	"lessor/client"
)

// Config says how a Worker works. Only Client is required.
type Config struct {
	Client *client.Client
	// ID names this process in the server's lists and records. No two that run may share it. Empty means one of its own,
	// made of the host's name and chance.
	ID string
	// Concurrency is how many jobs run at once. Zero means 10; at most 10,000.
	Concurrency int
	// TTL is how long a lease lives without a heartbeat. Zero means what the server says (60 s unless set).
	TTL time.Duration
	// Wait is how long one request for work may be held by the server until there is some. Zero means 20 s; at most 30 s.
	Wait time.Duration
	// DrainTimeout is how long jobs may go on once Run's context is done; then theirs is. Zero means 15 s, which together with
	// KillGrace stays under the 30 s that Kubernetes gives. Negative means not at all.
	DrainTimeout time.Duration
	// KillGrace is how long a handler may take to return once its context is done. Zero means 10 s.
	KillGrace time.Duration
	// Log is where warnings go. Nil means slog.Default().
	Log *slog.Logger
	// TracerProvider makes a span for each attempt. Nil means the global one of OpenTelemetry.
	TracerProvider trace.TracerProvider
}

// Bounds and defaults of Config.
const (
	defaultConcurrency = 10
	maxConcurrency     = 10_000
	defaultWait        = 20 * time.Second
	maxHold            = 30 * time.Second
	defaultDrain       = 15 * time.Second
	defaultKillGrace   = 10 * time.Second
	minTTL             = 100 * time.Millisecond
	maxTTL             = 12 * time.Hour
	maxID              = 200
)

// Worker leases jobs from a server and runs them with the handlers given by Handle.
type Worker struct {
	cfg    Config
	log    *slog.Logger
	tracer trace.Tracer
	wall   func() time.Time

	wake     chan struct{} // the heartbeat loop should look again
	ending   chan struct{} // the finishing loop has something to send
	draining chan struct{} // closed when the worker begins to stop
	calls    sync.WaitGroup
	attempts sync.WaitGroup

	mu       sync.Mutex
	begun    bool
	stopping bool
	handlers map[string]*handler
	held     map[lessor.LeaseID]*held
	running  int           // handlers that have not returned, and leases that wait for theirs
	stuck    int           // handlers that have not returned in time, among them
	ends     []*held       // whose end is to be sent
	changed  chan struct{} // closed and replaced when one of these changes so that somebody may wait no longer
	poll     poll
	pulse    pulse
}

// New checks cfg and returns a Worker. Nothing runs until Run.
func New(cfg Config) (*Worker, error) {
	if cfg.Client == nil {
		return nil, errors.New("worker: Client is missing")
	}
	if cfg.ID == "" {
		cfg.ID = ownID()
	}
	setDefault(&cfg.Concurrency, defaultConcurrency)
	setDefault(&cfg.Wait, defaultWait)
	setDefault(&cfg.DrainTimeout, defaultDrain)
	setDefault(&cfg.KillGrace, defaultKillGrace)
	switch n := utf8.RuneCountInString(cfg.ID); {
	case n > maxID:
		return nil, fmt.Errorf("worker: ID has %d characters, at most %d are allowed", n, maxID)
	case cfg.Concurrency < 1 || cfg.Concurrency > maxConcurrency:
		return nil, fmt.Errorf("worker: Concurrency is %d, allowed are 1 to %d", cfg.Concurrency, maxConcurrency)
	case cfg.TTL != 0 && (cfg.TTL < minTTL || cfg.TTL > maxTTL):
		return nil, fmt.Errorf("worker: TTL is %s, allowed are %s to %s", cfg.TTL, minTTL, maxTTL)
	case cfg.Wait < 0 || cfg.Wait > maxHold:
		return nil, fmt.Errorf("worker: Wait is %s, at most %s is allowed", cfg.Wait, maxHold)
	case cfg.KillGrace < 0:
		return nil, fmt.Errorf("worker: KillGrace is %s", cfg.KillGrace)
	}
	w := &Worker{
		cfg: cfg, log: cfg.Log, wall: wallClock,
		wake: make(chan struct{}, 1), ending: make(chan struct{}, 1),
		draining: make(chan struct{}), changed: make(chan struct{}),
		handlers: map[string]*handler{}, held: map[lessor.LeaseID]*held{},
	}
	if w.log == nil {
		w.log = slog.Default()
	}
	provider := cfg.TracerProvider
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	w.tracer = provider.Tracer("lessor/worker")
	return w, nil
}

// ownID is an id that no other process has.
func ownID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return fmt.Sprintf("%.150s-%s", host, rand.Text()[:10])
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// ID is how the server knows this worker.
func (w *Worker) ID() string { return w.cfg.ID }

// Run works until ctx is done, then drains: it asks for no more jobs, lets those that run go on for DrainTimeout, ends the
// context of the rest with ErrDraining, and gives back, without costing an attempt, what did not finish. Leases are kept
// alive meanwhile. It returns nil when everything it held is finished or given back, as the server has acknowledged; else an
// error that says what was left behind. A server that refuses this worker ends it too. Run may be called once.
//
// Everything it started has ended when it returns, except handlers that did not return within KillGrace of the end of
// their context: these it names in the log and leaves behind, and their leases expire.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.begin(); err != nil {
		return err
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var loops sync.WaitGroup
	loops.Go(func() { w.keep(work) })
	loops.Go(func() { w.finish(work) })

	asking, enough := context.WithCancelCause(ctx)
	asked := make(chan error, 1)
	go func() {
		err := w.ask(asking, work)
		asked <- err
		enough(err)
	}()
	<-asking.Done()
	err := w.drain(work, asked)
	stop()
	loops.Wait()
	w.calls.Wait()
	return err
}

// RunUntilSignal is Run until ctx is done or the process is told to stop by SIGTERM or SIGINT. A second signal ends the
// process at once.
func (w *Worker) RunUntilSignal(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop)
	return w.Run(ctx)
}

func (w *Worker) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.begun:
		return errors.New("worker: Run was called twice")
	case len(w.handlers) == 0:
		return errors.New("worker: there is no handler: call Handle before Run")
	}
	w.begun = true
	return nil
}
