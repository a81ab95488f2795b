package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	latencyBound   = 2.0  // times beanstalkd with fsync
)

// latency measures the time from just before a submission is sent until a waiting worker has the grant, over HTTP on
// the loopback address. Rounds alternate with beanstalkd, which also writes each job to disk.
func latency(ctx context.Context, b *bench, db *database) error {
	all := []*startTimes{{peer: lessorOver("SQLite", nil)}, {peer: lessorOver("PostgreSQL", db)}}
	if b.peers {
		all = append(all, &startTimes{peer: beanstalkd("0")})
	}
	rounds := b.size.of(4, 2, 1)
	for r := range rounds {
		b.note("latency: round %d of %d", r+1, rounds)
		for _, s := range all {
			if err := b.addStartTimes(ctx, s, b.size.of(5, 3, 1)*latencyRate); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	b.setting("%d rounds, %d jobs per second: submit, start, complete; every step is on disk", rounds, latencyRate)
	b.setting("%d workers that wait; server and client are processes of their own", latencyWorkers)
	b.judgeLatency(all)
	return nil
}

// startTimes are the times of jobs from their submission to their start, in all rounds.
type startTimes struct {
	peer
	waited  []time.Duration
	missing bool
}

// addStartTimes runs one round.
func (b *bench) addStartTimes(ctx context.Context, s *startTimes, jobs int) error {
	l, err := b.startJobs(ctx, s.peer, 2*latencyWorkers, jobs)
	if errors.Is(err, errMissing) {
		s.missing = true
		return nil
	}
	if err != nil {
		return err
	}
	s.waited = append(s.waited, l.waited...)
	return nil
}

func (b *bench) judgeLatency(all []*startTimes) {
	all = slices.DeleteFunc(all, func(s *startTimes) bool { return s.missing })
	var rows []string
	for _, s := range all {
		rows = append(rows, fmt.Sprintf("%s|%.2f|%.2f|%.2f|%.2f", s.name, percentile(s.waited, 50),
			percentile(s.waited, 90), percentile(s.waited, 99), percentile(s.waited, 100)))
	}
	b.table("submit to start|p50 ms|p90 ms|p99 ms|highest ms", rows)
	ours := all[0].waited
	b.atMost("p50 in ms", percentile(ours, 50), p50Bound)
	b.atMost("p99 in ms", percentile(ours, 99), p99Bound)
	if peer := all[len(all)-1]; len(all) == 3 {
		for _, percent := range []int{50, 99} {
			b.atMost(fmt.Sprintf("p%d over beanstalkd with fsync", percent),
				percentile(ours, percent)/percentile(peer.waited, percent), latencyBound)
		}
	}
}

// percentile returns the time in milliseconds within which this share of the jobs started.
func percentile(waited []time.Duration, percent int) float64 {
	sorted := slices.Sorted(slices.Values(waited))
	return sorted[(len(sorted)-1)*percent/100].Seconds() * 1000
}

// startJobs starts jobs with a fresh instance of a peer; nil if it starts none one by one.
func (b *bench) startJobs(ctx context.Context, p peer, width, jobs int) (l *latencyRun, err error) {
	run, err := p.start(ctx, b, width)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, run.end()) }()
	s, ok := run.(starter)
	if !ok {
		return nil, nil
	}
	b.note("latency of %s", p.name)
	l = s.latency(jobs)
	return l, l.run(ctx)
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
