package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
)

// riverPeer is the peer with which all others are compared.
const riverPeer = "River, PostgreSQL"

// riverOn is River on PostgreSQL, or on SQLite if db is nil. The width is MaxWorkers.
func riverOn(name string, db *database) peer {
	p := peer{name: name, widths: []int{500, 2000, river.QueueNumWorkersMax}}
	if db == nil {
		p.about = "InsertManyFast of 1,000; fetch cooldown and poll 1 ms; WAL, synchronous=FULL"
		p.start = func(ctx context.Context, b *bench, width int) (peerRun, error) { return b.riverSQLite(ctx, width) }
		return p
	}
	p.about = "InsertManyFast (COPY) of 10,000; fetch cooldown and poll 1 ms; 20 connections"
	p.start = func(ctx context.Context, _ *bench, width int) (peerRun, error) { return db.river(ctx, width) }
	return p
}

// riverRun is River with any driver; T is the transaction of the driver.
type riverRun[T any] struct {
	client, inserter *river.Client[T]
	handler          *riverHandler
	set              riverSetting
	db               *database
	drop             func() error
}

// riverHandler hands jobs to a measurement of latency.
type riverHandler struct {
	river.WorkerDefaults[riverNumbered]
	jobs chan []byte
}

// riverNumbered is a job with a number.
type riverNumbered struct {
	N int `json:"n"`
}

// Kind implements river.JobArgs.
func (riverNumbered) Kind() string { return "numbered" }

// Work implements river.Worker.
func (h *riverHandler) Work(ctx context.Context, job *river.Job[riverNumbered]) error {
	body, err := json.Marshal(job.Args)
	select {
	case h.jobs <- body:
	case <-ctx.Done():
	}
	return err
}

// riverSettings returns settings with both kinds of jobs.
func riverSettings(set riverSetting) (*river.Config, *riverHandler) {
	cfg, h := riverConfig(set), &riverHandler{jobs: make(chan []byte)}
	river.AddWorker(cfg.Workers, h)
	return cfg, h
}

func (d *database) river(ctx context.Context, width int) (peerRun, error) {
	name, err := d.create(ctx)
	if err != nil {
		return nil, err
	}
	pool, err := openRiverPG(ctx, d.URL(name), 20)
	if err != nil {
		return nil, errors.Join(err, d.drop(ctx, name))
	}
	drop := func() error {
		pool.Close()
		return d.drop(ctx, name)
	}
	set := riverSetting{batch: 10_000, inserters: 1, workers: width}
	cfg, h := riverSettings(set)
	client, err := river.NewClient(riverpgxv5.New(pool), cfg)
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	return &riverRun[pgx.Tx]{client, client, h, set, d, drop}, nil
}

func (b *bench) riverSQLite(ctx context.Context, width int) (peerRun, error) {
	folder, err := os.MkdirTemp(b.folder, "river-bench-")
	if err != nil {
		return nil, err
	}
	db, err := openRiver(ctx, filepath.Join(folder, "river.db"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	drop := func() error { return errors.Join(db.Close(), os.RemoveAll(folder)) }
	set := riverSetting{batch: 1000, inserters: 1, workers: width}
	cfg, h := riverSettings(set)
	client, err := river.NewClient(riversqlite.New(db), cfg)
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	// InsertManyFast of a client with queues panics on SQLite in this version, so a client without queues inserts.
	inserter, err := river.NewClient(riversqlite.New(db), &river.Config{Logger: silent()})
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	return &riverRun[*sql.Tx]{client, inserter, h, set, nil, drop}, nil
}

func (r *riverRun[T]) enqueue(ctx context.Context, jobs int) error {
	return insertRiver(ctx, r.inserter, jobs, r.set)
}

func (r *riverRun[T]) work(ctx context.Context, jobs int) error {
	completed, unsubscribe := r.client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: jobs + 1, Kinds: []river.EventKind{river.EventKindJobCompleted},
	})
	defer unsubscribe()
	if err := r.client.Start(ctx); err != nil {
		return err
	}
	return await(ctx, completed, jobs)
}

func (r *riverRun[T]) latency(jobs int) *latencyRun {
	start := sync.OnceValue(func() error { return r.client.Start(context.Background()) }) // until end
	send := func(ctx context.Context, body []byte) error {
		var args riverNumbered
		if err := errors.Join(start(), json.Unmarshal(body, &args)); err != nil {
			return err
		}
		_, err := r.inserter.Insert(ctx, args, nil)
		return err
	}
	return newLatencyRun(jobs, send, func(ctx context.Context, _ int, started func([]byte) error) error {
		select {
		case body := <-r.handler.jobs:
			return started(body)
		case <-ctx.Done():
			return nil
		}
	})
}

func (r *riverRun[T]) cpuTime() time.Duration { return r.db.used() }

func (r *riverRun[T]) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := r.client.StopAndCancel(ctx)
	return errors.Join(err, r.drop())
}
