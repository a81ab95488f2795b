package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"lessor"
	"lessor/client"
	"lessor/worker"
)

const (
	httpConcurrency   = 1000 // jobs that the worker runs at once
	httpPostgresBound = 2.0  // times River
	httpSQLiteBound   = 10.0
)

// sdkRun is one round of the SDK: inserted, and then worked.
type sdkRun struct{ insert, work remote }

func (r sdkRun) both() cost {
	return cost{ops: r.insert.own.ops, wall: r.insert.own.wall + r.work.own.wall}
}

// httpRiver are settings of River that its tuning in the benchmark postgres ends with, and the COPY of 10,000 jobs.
var httpRiver = riverPGSetting{riverSetting: riverSetting{batch: 10_000, inserters: 1, workers: 2000}, pool: 20}

// overHTTP measures Lessor as users run it: a server process, and a program with the SDK. Rounds alternate with River.
func overHTTP(ctx context.Context, b *bench, db *database) error {
	jobs, rounds := b.size.of(60_000, 20_000, 1_000), b.size.of(3, 1, 1)
	var ours, oursPG []sdkRun
	var river, riverPG []cost
	for r := range rounds {
		b.note("http: round %d of %d", r+1, rounds)
		run, err := b.sdkLives(ctx, nil, jobs)
		if err != nil {
			return err
		}
		ours = append(ours, run)
		if run, err = b.sdkLives(ctx, db, jobs); err != nil {
			return fmt.Errorf("postgres: %w", err)
		}
		oursPG = append(oursPG, run)
		if !b.peers {
			continue
		}
		c, err := b.riverLivesPG(ctx, db, jobs, httpRiver)
		if err != nil {
			return fmt.Errorf("river: %w", err)
		}
		b.note("http: river: %.0f jobs/s; CPU µs per job: own %.0f, database %.0f",
			c.own.rate(), c.own.cpuUS(), c.database.cpuUS())
		riverPG = append(riverPG, c.own)
		own, err := b.riverLives(ctx, jobs/6, riverSetting{batch: 1000, inserters: 1, workers: 2000})
		if err != nil {
			return fmt.Errorf("river: %w", err)
		}
		river = append(river, own)
	}
	b.setting(
		"%d jobs per round, submitted in batches of %d, then done by one Worker, %d at once; "+
			"medians of %d rounds",
		jobs, bulk, httpConcurrency, rounds)
	b.setting("the server is a process of its own; River (%v) works in the process of the bench", httpRiver)
	b.table("|insert/s|work/s|both/s|CPU µs per job: server|client|database|times River",
		[]string{sdkRow("SQLite", ours, river), sdkRow("PostgreSQL", oursPG, riverPG)})
	if b.peers {
		b.atLeast("PostgreSQL, over River", medianRate(oursPG)/median(riverPG, cost.rate), httpPostgresBound)
		b.atLeast("SQLite, over River", medianRate(ours)/median(river, cost.rate), httpSQLiteBound)
	}
	return nil
}

func medianRate(runs []sdkRun) float64 {
	all := make([]cost, len(runs))
	for i, r := range runs {
		all[i] = r.both()
	}
	return median(all, cost.rate)
}

func sdkRow(name string, runs []sdkRun, river []cost) string {
	var insert, work []remote
	for _, r := range runs {
		insert, work = append(insert, r.insert), append(work, r.work)
	}
	times := "–"
	if len(river) > 0 {
		times = fmt.Sprintf("%.2f", medianRate(runs)/median(river, cost.rate))
	}
	cpu := func(of func(remote) cost) string {
		return fmt.Sprintf("%.0f + %.0f", median(part(insert, of), cost.cpuUS), median(part(work, of), cost.cpuUS))
	}
	return fmt.Sprintf("%s|%.0f|%.0f|%.0f|%s|%s|%s|%s", name, median(part(insert, ofOwn), cost.rate),
		median(part(work, ofOwn), cost.rate), medianRate(runs), cpu(ofServer), cpu(ofOwn), cpu(ofDatabase), times)
}

// sdkLives submits jobs to a fresh server and has one Worker do them.
func (b *bench) sdkLives(ctx context.Context, db *database, jobs int) (r sdkRun, err error) {
	s, drop, err := b.spawnOn(ctx, childLessor, db)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.end(), drop()) }()
	c, err := client.New(client.Config{Server: s.addr})
	if err != nil {
		return r, err
	}
	defer c.Close()
	if r.insert, err = s.measure(db, jobs, func() error { return submitOver(ctx, c, jobs) }); err != nil {
		return r, err
	}
	r.work, err = s.measure(db, jobs, func() error { return workOver(ctx, c, jobs) })
	b.note("http: insert %.0f/s, work %.0f/s, both %.0f/s", r.insert.own.rate(), r.work.own.rate(), r.both().rate())
	return r, err
}

// spawnOn starts a child with SQLite, or with a fresh database of db. Call drop after the server has ended.
func (b *bench) spawnOn(ctx context.Context, what string, db *database) (_ *child, drop func() error, err error) {
	url, drop := "", func() error { return nil }
	if db != nil {
		name, err := db.create(ctx)
		if err != nil {
			return nil, nil, err
		}
		url, drop = db.URL(name), func() error { return db.drop(ctx, name) }
	}
	s, err := b.spawn(ctx, what, url)
	if err != nil {
		return nil, nil, errors.Join(err, drop())
	}
	return s, drop, nil
}

func submitOver(ctx context.Context, c *client.Client, jobs int) error {
	typ := "bench"
	subs := make([]lessor.Submission, min(bulk, jobs))
	for i := range subs {
		subs[i] = lessor.Submission{Type: &typ, Payload: []byte(payload)}
	}
	return concurrently(ctx, 2, (jobs+bulk-1)/bulk, func(ctx context.Context, _, item int) error {
		_, err := c.SubmitBatchIDs(ctx, subs[:min(bulk, jobs-item*bulk)])
		return err
	})
}

// workOver has one Worker do the jobs, and returns when the server has acknowledged the end of all.
func workOver(ctx context.Context, c *client.Client, jobs int) error {
	w, err := worker.New(worker.Config{Client: c, Concurrency: httpConcurrency, Log: silent()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var done atomic.Int64
	worker.Handle(w, "bench", func(context.Context, *worker.Job[riverArgs]) (any, error) {
		if done.Add(1) == int64(jobs) {
			cancel()
		}
		return nil, nil
	})
	if err := w.Run(ctx); err != nil {
		return err
	}
	if n := done.Load(); n != int64(jobs) {
		return fmt.Errorf("%d of %d jobs were done", n, jobs)
	}
	return nil
}

// holdOver submits n jobs and takes their leases.
func holdOver(ctx context.Context, c *client.Client, n int) ([]lessor.LeaseID, error) {
	if err := submitOver(ctx, c, n); err != nil {
		return nil, err
	}
	return takeAll(ctx, c, n)
}
