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
	c, err := client.New(client.Config{Server: s.addr})
	if err != nil {
		return err
	}
	defer c.Close()
	b.note("latency: %d jobs at %d per second", jobs, latencyRate)
	l := newLatencyRun(jobs, sendOver(c), workOneOver(c))
	used, err := timed(jobs, func() error { return l.run(ctx) })
	if err != nil {
		return err
	}
	at := l.percentile
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

// latencyRun sends jobs at their times and records how long each took to start. A job's payload contains its number,
// because a worker may receive the job before the submitter knows its id.
type latencyRun struct {
	send func(ctx context.Context, payload []byte) error
	// work waits for a job, calls started with its payload as soon as it has it, and completes it. Without a job it
	// returns nil.
	work   func(ctx context.Context, worker int, started func(payload []byte) error) error
	mu     sync.Mutex // sent is written by submitters and read by workers
	sent   []time.Time
	waited []time.Duration
	left   chan struct{} // one element for each completed job
}

func newLatencyRun(
	jobs int, send func(context.Context, []byte) error,
	work func(ctx context.Context, worker int, started func([]byte) error) error,
) *latencyRun {
	return &latencyRun{
		send: send, work: work,
		sent: make([]time.Time, jobs), waited: make([]time.Duration, jobs), left: make(chan struct{}, jobs),
	}
}

// percentile returns the time in milliseconds within which this share of the jobs started.
func (l *latencyRun) percentile(percent int) float64 {
	sorted := slices.Sorted(slices.Values(l.waited))
	return sorted[(len(sorted)-1)*percent/100].Seconds() * 1000
}

func (l *latencyRun) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var background sync.WaitGroup
	for worker := range latencyWorkers {
		background.Go(func() { l.workAll(ctx, worker, cancel) })
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
			body := fmt.Appendf(nil, `{"n":%d}`, i)
			l.mu.Lock()
			l.sent[i] = time.Now()
			l.mu.Unlock()
			if err := l.send(ctx, body); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("submit: %w", err))
			}
		})
	}
	return len(l.sent)
}

// workAll takes jobs until ctx is done.
func (l *latencyRun) workAll(ctx context.Context, worker int, fail context.CancelCauseFunc) {
	for ctx.Err() == nil {
		started := false
		err := l.work(ctx, worker, func(payload []byte) error {
			started = true
			return l.started(payload, time.Now())
		})
		switch {
		case ctx.Err() != nil:
		case err != nil:
			fail(err)
		case started:
			l.left <- struct{}{}
		}
	}
}

func (l *latencyRun) started(payload []byte, at time.Time) error {
	var job struct{ N int }
	if err := json.Unmarshal(payload, &job); err != nil {
		return err
	}
	l.mu.Lock()
	l.waited[job.N] = at.Sub(l.sent[job.N])
	l.mu.Unlock()
	return nil
}

// sendOver returns a function that submits a job over HTTP.
func sendOver(c *client.Client) func(context.Context, []byte) error {
	return func(ctx context.Context, payload []byte) error {
		_, err := c.SubmitJob(ctx, lessor.Submission{Type: new("bench"), Payload: payload})
		return err
	}
}

// workOneOver returns a function that waits for a job over HTTP and completes it.
func workOneOver(c *client.Client) func(context.Context, int, func([]byte) error) error {
	workers := workerNames(latencyWorkers)
	return func(ctx context.Context, worker int, started func([]byte) error) error {
		name := &workers[worker]
		grants, denial, err := c.Request(ctx, lessor.LeaseRequest{WorkerID: name, WaitMS: new(int64(30_000))})
		if err != nil || denial != nil {
			return err
		}
		if err := started(grants[0].Job.Payload); err != nil {
			return err
		}
		return c.Complete(ctx, grants[0].Lease.ID, lessor.Completion{WorkerID: name, Status: new("completed")})
	}
}
