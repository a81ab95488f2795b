package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"lessor"
	"lessor/client"
)

const (
	latencyRate    = 100 // jobs per second
	latencyWorkers = 8
	p50Bound       = 2.0  // ms
	p99Bound       = 10.0 // ms
)

// latency measures the time from just before a submission is sent until a waiting worker has the grant, over HTTP on
// the loopback address.
func latency(ctx context.Context, b *bench) (err error) {
	jobs := b.size.of(20, 5, 1) * latencyRate
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s, err := b.start(ctx, ln, nil)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer func() { err = errors.Join(err, s.end()) }()
	l := &latencyRun{
		sent: make([]time.Time, jobs), waited: make([]time.Duration, jobs), left: make(chan struct{}, jobs),
	}
	if l.client, err = client.New(client.Config{Server: s.addr}); err != nil {
		return err
	}
	defer l.client.Close()
	b.note("latency: %d jobs at %d per second", jobs, latencyRate)
	used, err := timed(jobs, func() error { return l.run(ctx) })
	if err != nil {
		return err
	}
	slices.Sort(l.waited)
	at := func(percent int) float64 { return l.waited[(len(l.waited)-1)*percent/100].Seconds() * 1000 }
	b.setting("%d jobs at %d per second, %d workers in long polls of 30 s", jobs, latencyRate, latencyWorkers)
	b.setting("HTTP on 127.0.0.1, client and server in one process")
	b.setting("each job: submit, grant, complete; synchronous=FULL")
	b.table("|p50 ms|p90 ms|p99 ms|highest ms|CPU µs per job", []string{
		fmt.Sprintf("submit to start|%.2f|%.2f|%.2f|%.2f|%.0f", at(50), at(90), at(99), at(100), used.cpuUS()),
	})
	b.atMost("p50 in ms", at(50), p50Bound)
	b.atMost("p99 in ms", at(99), p99Bound)
	return nil
}

// latencyRun records the jobs of a run. A job's payload contains its number, because a worker may receive the job
// before the submitter knows its id.
type latencyRun struct {
	client *client.Client
	mu     sync.Mutex // sent is written by submitters and read by workers
	sent   []time.Time
	waited []time.Duration
	left   chan struct{} // one element for each started job
}

func (l *latencyRun) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var background sync.WaitGroup
	for _, name := range workerNames(latencyWorkers) {
		background.Go(func() { l.work(ctx, name, cancel) })
	}
	submitted := l.submitAll(ctx, &background, cancel)
	for range submitted {
		select {
		case <-l.left:
		case <-ctx.Done():
		}
	}
	err := context.Cause(ctx)
	cancel(nil)
	background.Wait()
	return err
}

// submitAll sends each job at its time, whether or not the one before has started.
func (l *latencyRun) submitAll(ctx context.Context, background *sync.WaitGroup, fail context.CancelCauseFunc) int {
	ticker := time.NewTicker(time.Second / latencyRate)
	defer ticker.Stop()
	for i := range l.sent {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return i
		}
		background.Go(func() {
			sub := lessor.Submission{Type: new("bench"), Payload: fmt.Appendf(nil, `{"n":%d}`, i)}
			l.mu.Lock()
			l.sent[i] = time.Now()
			l.mu.Unlock()
			if _, err := l.client.SubmitJob(ctx, sub); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("submit: %w", err))
			}
		})
	}
	return len(l.sent)
}

// work takes jobs until ctx is done.
func (l *latencyRun) work(ctx context.Context, worker string, fail context.CancelCauseFunc) {
	for ctx.Err() == nil {
		err := l.workOne(ctx, worker)
		if err != nil && ctx.Err() == nil {
			fail(err)
		}
	}
}

func (l *latencyRun) workOne(ctx context.Context, worker string) error {
	grants, denial, err := l.client.Request(ctx, lessor.LeaseRequest{WorkerID: &worker, WaitMS: new(int64(30_000))})
	now := time.Now()
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if denial != nil {
		return nil
	}
	var job struct{ N int }
	if err := json.Unmarshal(grants[0].Job.Payload, &job); err != nil {
		return err
	}
	l.mu.Lock()
	l.waited[job.N] = now.Sub(l.sent[job.N])
	l.mu.Unlock()
	done := lessor.Completion{WorkerID: &worker, Status: new("completed")}
	if err := l.client.Complete(ctx, grants[0].Lease.ID, done); err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	l.left <- struct{}{}
	return nil
}
