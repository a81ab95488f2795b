package main

import (
	"context"
	"errors"
	"time"

	"lessor"
	"lessor/client"
)

// peersOn returns Lessor as it is used, and its peers. Those on PostgreSQL share db.
func peersOn(db *database) []peer {
	return append([]peer{
		lessorOver("Lessor, SQLite", nil), lessorOver("Lessor, PostgreSQL", db),
		lessorInside("Lessor in process, SQLite", nil), lessorInside("Lessor in process, PostgreSQL", db),
		riverOn(riverPeer, db), riverOn("River, SQLite", nil),
		asynqPeer("everysec"), asynqPeer("always"),
		beanstalkd("50"), beanstalkd("0"),
	}, largePeers()...)
}

// lessorOver is Lessor as users run it: a server process, and a program with the SDK over HTTP.
func lessorOver(name string, db *database) peer {
	return peer{
		name:   name,
		about:  "a server process; batches of 1,000, one Worker with 1,000 jobs at once, heartbeats in calls of 100",
		widths: []int{httpBatchers},
		start: func(ctx context.Context, b *bench, width int) (peerRun, error) {
			s, drop, err := b.spawnOn(ctx, childLessor, db)
			if err != nil {
				return nil, err
			}
			r := &lessorRun{child: s, db: db, drop: drop, width: width}
			if r.client, err = client.New(client.Config{Server: s.addr}); err != nil {
				return nil, errors.Join(err, s.end(), drop())
			}
			return r, nil
		},
	}
}

type lessorRun struct {
	*child
	db     *database
	drop   func() error
	client *client.Client
	width  int
	held   []lessor.LeaseID
}

func (r *lessorRun) enqueue(ctx context.Context, jobs int) error {
	return submitOver(ctx, r.client, jobs)
}

func (r *lessorRun) work(ctx context.Context, jobs int) error { return workOver(ctx, r.client, jobs) }

func (r *lessorRun) hold(ctx context.Context, n int) (err error) {
	r.held, err = holdOver(ctx, r.client, n)
	return err
}

func (r *lessorRun) beat(ctx context.Context, beats int) error {
	return concurrently(ctx, r.width, beats/httpBeatBatch, func(ctx context.Context, _, item int) error {
		first := item * httpBeatBatch % len(r.held)
		_, err := r.client.HeartbeatAll(ctx, beater, r.held[first:first+httpBeatBatch])
		return err
	})
}

func (r *lessorRun) latency(jobs int) *latencyRun {
	return newLatencyRun(jobs, sendOver(r.client), workOneOver(r.client))
}

func (r *lessorRun) cpuTime() time.Duration { return r.child.cpuTime() + r.db.used() }

func (r *lessorRun) end() error {
	r.client.Close()
	return errors.Join(r.child.end(), r.drop())
}

// used is cpuTime; without a database it is 0.
func (d *database) used() time.Duration {
	if d == nil {
		return 0
	}
	return d.cpuTime()
}

// lessorInside is Lessor inside the program, without HTTP.
func lessorInside(name string, db *database) peer {
	return peer{
		name: name, about: "package node; batches of 1,000, requests of 500, heartbeats in calls of 100",
		widths: []int{batchCallers},
		start: func(ctx context.Context, b *bench, _ int) (peerRun, error) {
			s, err := b.fillable(ctx, db, nil)
			if err != nil {
				return nil, err
			}
			return &insideRun{filling: s, db: db}, nil
		},
	}
}

type insideRun struct {
	*filling
	db     *database
	leases []string
}

func (r *insideRun) enqueue(ctx context.Context, jobs int) error { return r.submitBatches(ctx, jobs) }
func (r *insideRun) work(ctx context.Context, jobs int) error    { return r.workBatches(ctx, jobs) }
func (r *insideRun) cpuTime() time.Duration                      { return r.db.used() }
func (r *insideRun) end() error                                  { return r.filling.end() }

func (r *insideRun) hold(ctx context.Context, n int) error {
	leases, err := r.filling.hold(ctx, n, nobody)
	for _, id := range leases {
		r.leases = append(r.leases, id.String())
	}
	return err
}

func (r *insideRun) beat(ctx context.Context, beats int) error {
	return concurrently(ctx, httpBatchers, beats/httpBeatBatch, func(ctx context.Context, _, item int) error {
		first := item * httpBeatBatch % len(r.leases)
		_, err := r.HeartbeatAll(ctx, beater, r.leases[first:first+httpBeatBatch])
		return err
	})
}

// latency hands jobs over inside the process.
func (r *insideRun) latency(jobs int) *latencyRun {
	workers := workerNames(latencyWorkers)
	send := func(ctx context.Context, body []byte) error {
		_, err := r.SubmitJob(ctx, lessor.Submission{Type: new("bench"), Payload: body})
		return err
	}
	return newLatencyRun(jobs, send, func(ctx context.Context, worker int, started func([]byte) error) error {
		grants, denial, err := r.Request(ctx, lessor.LeaseRequest{WorkerID: &workers[worker], WaitMS: new(int64(1000))})
		if err != nil || denial != nil {
			return err
		}
		if err := started(grants[0].Job.Payload); err != nil {
			return err
		}
		return r.finish(ctx, grants[0].Lease.ID, &workers[worker])
	})
}
