package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/pause"
)

// Limits of a bench, so that a mistyped number does not overload a server.
const (
	maxBenchJobs = 1_000_000
	maxBenchers  = 512
)

type benchFlags struct {
	jobs, concurrency int
	timeout           duration
}

func (a *app) benchCommand() *cobra.Command {
	f := benchFlags{timeout: duration{5 * time.Minute}}
	cmd := a.reaching(&cobra.Command{
		Use:   "bench",
		Short: "Measure how fast a server submits, grants, extends and completes",
		Long: `Bench takes jobs through their whole lifecycle: each is submitted, leased, sent one heartbeat and
completed, with one HTTP call each. --concurrency callers work at once, and each waits for its answers. Bench prints
lifecycles per second and the latency of each call.

The jobs have a type of their own, so no worker gets them, but they share queue, capacity and store with all others: on
a busy server the result is the remaining speed. Jobs that are not finished at the end are cancelled; finished ones are
removed by retention.`,
		Example: "  lessor bench --jobs 20000 --concurrency 64",
	})
	wholeVar(cmd, &f.jobs, "jobs", 1000, "jobs to run")
	wholeVar(cmd, &f.concurrency, "concurrency", 16, "callers at once")
	cmd.Flags().Var(&f.timeout, "timeout", "give up after this long")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error {
		if f.jobs < 1 || f.jobs > maxBenchJobs || f.concurrency < 1 || f.concurrency > maxBenchers {
			return usagef("allowed are --jobs 1 to %d and --concurrency 1 to %d", maxBenchJobs, maxBenchers)
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		return a.bench(cmd.Context(), c, f)
	})
	return cmd
}

// bench is one running measurement.
type bench struct {
	*client.Client
	kind    string // the type of its jobs
	left    atomic.Int64
	done    atomic.Int64
	denials atomic.Int64
	meter   *meter

	mu   sync.Mutex
	took map[string][]time.Duration // by call
}

// benchCalls are in the order of a job's lifecycle.
var benchCalls = []string{"submit", "request", "heartbeat", "complete"}

func (a *app) bench(ctx context.Context, c *client.Client, f benchFlags) error {
	b := &bench{
		Client: c, kind: fmt.Sprintf("bench.%08x", rand.Uint32()), took: map[string][]time.Duration{},
		meter: a.meter(jobsDone),
	}
	b.left.Store(int64(f.jobs))
	limited, cancel := context.WithTimeoutCause(ctx, f.timeout.Duration,
		fmt.Errorf("not done after %s: raise --timeout, or lower --jobs", f.timeout.String()))
	defer cancel()
	limited, fail := context.WithCancelCause(limited)
	defer fail(nil)
	began := time.Now()
	var callers sync.WaitGroup
	for i := range f.concurrency {
		callers.Go(func() {
			if err := b.live(limited, fmt.Sprintf("%s-%d", b.kind, i), int64(f.jobs)); err != nil {
				fail(err) // the other callers would fail too
			}
		})
	}
	callers.Wait()
	took := time.Since(began)
	if err := context.Cause(limited); b.done.Load() < int64(f.jobs) {
		b.meter.end()
		return errors.Join(err, b.tidy(context.WithoutCancel(ctx)))
	}
	return a.printBench(b, f, took)
}

// live takes jobs through their lifecycles, one after the other, until there are enough or until is done. It waits for
// the answer to every call: tidy could miss a job that the server makes after the caller has gone.
func (b *bench) live(until context.Context, worker string, jobs int64) error {
	ctx := context.WithoutCancel(until)
	for until.Err() == nil && b.left.Add(-1) >= 0 {
		err := b.time("submit", func() error {
			_, err := b.Submit(ctx, b.kind, nil, nil)
			return err
		})
		if err != nil {
			return err
		}
		id, err := b.lease(until, worker)
		if err != nil || until.Err() != nil {
			return err
		}
		if err := b.time("heartbeat", func() error {
			_, err := b.Heartbeat(ctx, id, lessor.Heartbeat{WorkerID: &worker})
			return err
		}); err != nil {
			return err
		}
		if err := b.time("complete", func() error {
			return b.Complete(ctx, id, lessor.Completion{WorkerID: &worker, Status: new("completed")})
		}); err != nil {
			return err
		}
		b.meter.update(b.done.Add(1), jobs)
	}
	return nil
}

// lease repeats its request until it gets a job: another caller may have taken the job that this caller submitted, and
// left its own.
func (b *bench) lease(until context.Context, worker string) (id lessor.LeaseID, err error) {
	ctx := context.WithoutCancel(until)
	for until.Err() == nil {
		var grants []lessor.Grant
		var denial *lessor.Denial
		err := b.time("request", func() (err error) {
			grants, denial, err = b.Request(ctx, lessor.LeaseRequest{WorkerID: &worker, Types: []string{b.kind}})
			return err
		})
		switch {
		case err != nil:
			return id, err
		case denial == nil:
			return grants[0].Lease.ID, nil
		}
		b.denials.Add(1)
		pause.For(until, time.Duration(denial.RetryAfterMS)*time.Millisecond)
	}
	return id, nil
}

func (b *bench) time(call string, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	took := time.Since(began)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.took[call] = append(b.took[call], took)
	return nil
}

// tidyTime bounds the clean-up after a failed bench.
const tidyTime = 30 * time.Second

// tidy cancels the jobs that are not finished.
func (b *bench) tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tidyTime)
	defer cancel()
	for _, state := range []lessor.State{lessor.Queued, lessor.Leased, lessor.Running} {
		for job, err := range b.AllJobs(ctx, lessor.JobFilter{State: state, Type: b.kind}) {
			if err == nil {
				_, err = b.Cancel(ctx, job.ID, true)
			}
			if err != nil && lessor.CodeOf(err) != lessor.CodeConflict {
				return fmt.Errorf("jobs of type %s are left behind: %w", b.kind, err)
			}
		}
	}
	return nil
}
