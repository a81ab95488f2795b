package executor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/pause"
	"lessor/internal/sentinel"
)

// Config configures a Runner. Task.Command is required, and Types for Run.
type Config struct {
	// Server, Token and TokenServer reach the server, as for a client. A shim is given all three.
	Server, Token, TokenServer string
	// Workspace is the folder in which commands run.
	Workspace string
	// Worker is the worker id. The id of the workspace is added, so that Runners with the same name in two places
	// differ.
	Worker string
	Types  []string
	// Concurrency is how many commands run at once, counting those that an earlier Runner of this name left running.
	// Zero means 1.
	Concurrency int
	// TTL is how long a lease lives without a heartbeat. Zero means the server's lease.ttl.
	TTL time.Duration
	// Wait makes Run return only when the commands have ended, or must be stopped.
	Wait bool
	// OnStop says what becomes of running commands when Run's context is done. Empty means OnStopAuto.
	OnStop OnStop
	// StopGrace is how long Run may take to stop them: what the platform allows before it kills. Zero means 10 s.
	StopGrace time.Duration
	Task      Task
	// Shim is the program and the arguments that run a shim; the folder of its job is added.
	Shim []string
	// Environ is where the variables of commands come from.
	Environ []string
	Log     *slog.Logger
}

// holdRequest is how long the server is asked to hold a request for which there is no job: the most it allows.
const holdRequest = 30 * time.Second

// Runner leases jobs and starts a shim for each.
type Runner struct {
	cfg      Config
	w        *sentinel.Workspace
	client   *client.Client
	worker   string
	lifetime lifetime

	freed  chan struct{}  // a shim has ended
	better chan struct{}  // a job could be started after others could not
	shims  sync.WaitGroup // goroutines that start or follow a shim

	mu   sync.Mutex
	live map[lessor.LeaseID]attempt // what they start or follow

	children children
	trouble  trouble
}

// attempt is the job of a lease, how many goroutines follow it, and its shim if this Runner started it and its
// command has begun.
type attempt struct {
	job  lessor.JobID
	n    int
	shim *os.Process
}

// NewRunner checks cfg and opens the workspace. The caller closes the Runner.
func NewRunner(cfg Config) (*Runner, error) {
	switch {
	case supported() != nil:
		return nil, supported()
	case len(cfg.Task.Command) == 0 || len(cfg.Shim) == 0:
		return nil, errors.New("command and shim are required")
	case cfg.Concurrency < 0 || cfg.Concurrency > maxConcurrency:
		return nil, fmt.Errorf("concurrency is 1 to %d", maxConcurrency)
	}
	cfg.Concurrency = max(cfg.Concurrency, 1)
	cfg.OnStop = cmp.Or(cfg.OnStop, OnStopAuto)
	cfg.StopGrace = cmp.Or(cfg.StopGrace, defaultStopGrace)
	cfg.Task = cfg.Task.withDefaults()
	c, err := client.New(client.Config{
		Server: cfg.Server, Token: cfg.Token, TokenServer: cfg.TokenServer,
		UserAgent: "lessor-work",
	})
	if err != nil {
		return nil, err
	}
	w, err := sentinel.Open(cfg.Workspace)
	if err != nil {
		return nil, err
	}
	r := &Runner{
		cfg: cfg, w: w, client: c, live: map[lessor.LeaseID]attempt{},
		freed: make(chan struct{}, 1), better: make(chan struct{}, 1),
	}
	r.worker = fmt.Sprintf("%.180s.%.8s", cfg.Worker, w.ID())
	return r, nil
}

// maxConcurrency is the most leases that one request may ask for.
const maxConcurrency = 500

// Worker is the id under which the Runner asks for jobs.
func (r *Runner) Worker() string { return r.worker }

// Close closes the workspace. Commands continue.
func (r *Runner) Close() error {
	r.client.Close()
	return r.w.Close()
}

// Run requests jobs and runs them until ctx is done. Then it stops the commands or leaves them, as OnStop says, with
// Wait after they had time to end, and returns. It returns an error when the server refuses it.
func (r *Runner) Run(ctx context.Context) error {
	r.findLifetime(ctx)
	following, unfollow := context.WithCancel(context.WithoutCancel(ctx))
	defer r.shims.Wait()
	defer unfollow()
	r.reap(following)
	if err := r.pickUp(ctx, following); err != nil {
		return err
	}
	err := r.ask(ctx, following)
	if ctx.Err() == nil {
		return err
	}
	r.atStop(following)
	if r.lifetime.stops {
		r.releaseUnanswered(following)
	}
	return nil
}

// reap removes ended orphans from the process table, if this is process 1, which inherits those of killed shims.
func (r *Runner) reap(following context.Context) {
	if os.Getpid() == 1 {
		r.shims.Go(func() { reapOrphans(following, &r.children) })
	}
}

// ask leases jobs whenever fewer than allowed run, until ctx is done or the server refuses.
func (r *Runner) ask(ctx, following context.Context) error {
	request, failures := rand.Text(), 0
	for ctx.Err() == nil {
		free := r.cfg.Concurrency - r.running()
		if free <= 0 {
			select {
			case <-r.freed:
			case <-ctx.Done():
			}
			continue
		}
		most, ok := r.ready(ctx)
		if !ok {
			continue
		}
		free = min(free, most)
		asked := time.Now()
		grants, denial, err := r.client.Request(ctx, r.request(request, free))
		switch {
		case err != nil && ctx.Err() == nil:
			if isFinal(err) {
				return fmt.Errorf("ask for jobs: %w", err)
			}
			if failures++; failures == 1 {
				r.cfg.Log.Warn("no server answers, trying again", "error", err)
			}
			pause.For(ctx, retryPause(failures)) // the same request id returns leases whose grant was not received
			continue
		case denial != nil:
			pause.For(ctx, time.Duration(denial.RetryAfterMS)*time.Millisecond-time.Since(asked))
		}
		request, failures = rand.Text(), 0
		for _, g := range grants {
			r.take(ctx, following, g)
		}
	}
	return nil
}

func (r *Runner) request(id string, most int) lessor.LeaseRequest {
	q := lessor.LeaseRequest{
		WorkerID: &r.worker, Types: r.cfg.Types, MaxLeases: new(int64(most)), RequestID: &id,
		WaitMS: new(holdRequest.Milliseconds()), WorkspaceID: new(r.w.ID()),
	}
	if r.cfg.TTL > 0 {
		q.TTLMS = new(r.cfg.TTL.Milliseconds())
	}
	return q
}

// isFinal reports whether another request would fail in the same way.
func isFinal(err error) bool {
	switch lessor.CodeOf(err) {
	case "", lessor.CodeUnavailable, lessor.CodeInternal, lessor.CodeRateLimited:
		return false
	default:
		return true
	}
}

// take starts a shim for a grant, beside the others. A Runner that stops its commands starts none when ctx is done.
func (r *Runner) take(ctx, following context.Context, g lessor.Grant) {
	if !r.lifetime.stops {
		ctx = following
	}
	r.beside(g.Lease, func() { r.follow(ctx, following, g) })
}

// beside runs fn, during which the lease's job counts as running.
func (r *Runner) beside(lease lessor.Lease, fn func()) {
	r.count(lease, 1)
	r.shims.Go(func() {
		fn()
		r.count(lease, -1)
		notify(r.freed)
	})
}

func (r *Runner) count(lease lessor.Lease, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.live[lease.ID]
	a.job, a.n = lease.JobID, a.n+n
	if r.live[lease.ID] = a; a.n == 0 {
		delete(r.live, lease.ID)
	}
}

func (r *Runner) liveLeases() []lessor.LeaseID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.live))
}

// liveJobs returns the jobs that run, in a stable order.
func (r *Runner) liveJobs() (jobs []lessor.JobID) {
	r.mu.Lock()
	for _, a := range r.live {
		jobs = append(jobs, a.job)
	}
	r.mu.Unlock()
	slices.SortFunc(jobs, func(a, b lessor.JobID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
	return slices.Compact(jobs)
}

// running counts the attempts that run: a job may have two, a zombie and one that waits for its folder.
func (r *Runner) running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := 0
	for _, a := range r.live {
		sum += a.n
	}
	return sum
}
