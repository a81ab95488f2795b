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

// Config configures a Worker. Only Client is required.
type Config struct {
	Client *client.Client
	// ID names this worker in the server's lists and records. Two running workers must not share an id. The default is
	// the host name and a random suffix.
	ID string
	// Concurrency is how many jobs run at once, at most 10,000. The default is 10.
	Concurrency int
	// TTL is how long a lease lives without a heartbeat. The default is the server's lease.ttl.
	TTL time.Duration
	// Wait is how long the server may hold a request until there is work, at most 30 s. The default is 20 s.
	Wait time.Duration
	// DrainTimeout is how long jobs may continue once Run's context is done, before the worker ends their contexts.
	// The default is 15 s: together with KillGrace it stays within the 30 s that Kubernetes allows. A negative value
	// means no time.
	DrainTimeout time.Duration
	// KillGrace is how long a handler may take to return once its context is done. The default is 10 s.
	KillGrace time.Duration
	// Log receives warnings. The default is slog.Default().
	Log *slog.Logger
	// TracerProvider creates a span for each attempt. The default is OpenTelemetry's global provider.
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

	wake     chan struct{} // wakes the heartbeat loop
	ending   chan struct{} // wakes the finishing loop
	draining chan struct{} // closed when the worker begins to stop
	calls    sync.WaitGroup
	attempts sync.WaitGroup

	mu       sync.Mutex
	begun    bool
	stopping bool
	handlers map[string]*handler
	leases   map[lessor.LeaseID]*lease
	running  int           // handlers that have not returned, and leases whose handler has not started yet
	stuck    int           // handlers among them that have not returned in time
	ends     []*lease      // leases whose end must be sent
	changed  chan struct{} // closed by notifyLocked; nil = nobody waits
	asked    int           // places that requests on their way may fill
	poll     poll
	rush     rush
	pulse    pulse
}

// New checks cfg and returns a Worker. Nothing runs until Run.
func New(cfg Config) (*Worker, error) {
	if cfg.Client == nil {
		return nil, errors.New("worker: Client is missing")
	}
	if cfg.ID == "" {
		cfg.ID = randomID()
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
		draining: make(chan struct{}),
		handlers: map[string]*handler{}, leases: map[lessor.LeaseID]*lease{},
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

// randomID returns an id that no other process has.
func randomID() string {
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

// ID returns the id by which the server knows this worker.
func (w *Worker) ID() string { return w.cfg.ID }

// Run works until ctx is done, or until the server refuses this worker. Then it drains: it requests no more jobs,
// lets the running jobs continue for DrainTimeout, ends the contexts of the remaining ones with ErrDraining, and
// releases what did not finish, which costs the jobs no attempt. Leases stay alive meanwhile.
//
// Run returns nil when the server has acknowledged the end of every lease; otherwise an error that says what was left
// behind. All goroutines that it started have ended then, except those of handlers that did not return within
// KillGrace of the end of their context: Run logs their names, and their leases expire. Run may be called once.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.begin(); err != nil {
		return err
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var loops sync.WaitGroup
	loops.Go(func() { w.heartbeatLoop(work) })
	loops.Go(func() { w.finishLoop(work) })
	loops.Go(func() { w.cancelLoop(work) })

	requesting, refuse := context.WithCancelCause(ctx)
	refused := make(chan error, 1)
	go func() {
		var second sync.WaitGroup
		second.Go(func() { _ = w.requestLoop(requesting, work, true) }) // the first gets the same refusal
		err := w.requestLoop(requesting, work, false)
		refuse(err)
		second.Wait()
		refused <- err
	}()
	<-requesting.Done()
	err := w.drain(work, refused)
	stop()
	loops.Wait()
	w.calls.Wait()
	return err
}

// RunUntilSignal is Run until ctx is done or the process receives SIGTERM or SIGINT. A second signal ends the process
// at once.
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
