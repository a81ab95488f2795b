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
	httpConcurrency = 1000 // jobs that the worker runs at once
	httpCallers     = 64   // connections of single heartbeats
	httpBeatBatch   = 100  // leases of a batched heartbeat
	httpBatchers    = 8    // concurrent batched heartbeats

	httpPostgresBound = 2.0 // times River
	httpSQLiteBound   = 10.0
	singleBound       = 0.7 // times a bare handler
	batchBoundSQLite  = 0.5
	batchBoundPG      = 0.35
)

// overHTTP measures Lessor as users run it: a server process, and a program with the SDK. Rounds alternate with River.
func overHTTP(ctx context.Context, b *bench) (err error) {
	db, err := b.startDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.end()) }()
	if err := b.sdkWork(ctx, db); err != nil {
		return err
	}
	return b.httpBeats(ctx, db)
}

// sdkRun is one round of the SDK: inserted, and then worked.
type sdkRun struct{ insert, work remote }

func (r sdkRun) both() cost {
	return cost{ops: r.insert.own.ops, wall: r.insert.own.wall + r.work.own.wall}
}

// httpRiver are settings of River that its tuning in the benchmark postgres ends with, and the COPY of 10,000 jobs.
var httpRiver = riverPGSetting{riverSetting: riverSetting{batch: 10_000, inserters: 1, workers: 2000}, pool: 20}

func (b *bench) sdkWork(ctx context.Context, db *database) error {
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

// httpBeats measures heartbeats over HTTP, one per call and in batches, next to a handler that only speaks HTTP and
// JSON.
func (b *bench) httpBeats(ctx context.Context, db *database) error {
	held, rounds := b.size.of(10_000, 10_000, 200), b.size.of(3, 1, 1)
	var rows []string
	rates := map[string][2]float64{}
	for _, kind := range []struct {
		name string
		what string
		db   *database
	}{{"bare handler", childBare, nil}, {"SQLite", childLessor, nil}, {"PostgreSQL", childLessor, db}} {
		single, batched, err := b.beatOver(ctx, kind.what, kind.db, held, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		rates[kind.name] = [2]float64{median(part(single, ofOwn), cost.rate), median(part(batched, ofOwn), cost.rate)}
		rows = append(rows, beatsRow(kind.name+", single", single), beatsRow(kind.name+", calls of 100", batched))
	}
	b.setting("%d leases; single calls on %d connections, calls of %d leases on %d; medians of %d rounds",
		held, httpCallers, httpBeatBatch, httpBatchers, rounds)
	b.table("heartbeats|per second|CPU µs each: server|client|database", rows)
	bare := rates["bare handler"]
	b.atLeast("single heartbeats on SQLite over a bare handler", rates["SQLite"][0]/bare[0], singleBound)
	b.setting("single heartbeats on PostgreSQL over a bare handler: %.2f", rates["PostgreSQL"][0]/bare[0])
	b.atLeast("heartbeats in calls of 100 on SQLite", rates["SQLite"][1]/bare[1], batchBoundSQLite)
	b.atLeast("heartbeats in calls of 100 on PostgreSQL", rates["PostgreSQL"][1]/bare[1], batchBoundPG)
	return nil
}

func beatsRow(name string, rounds []remote) string {
	return fmt.Sprintf("%s|%.0f|%.1f|%.1f|%.1f", name, median(part(rounds, ofOwn), cost.rate),
		median(part(rounds, ofServer), cost.cpuUS), median(part(rounds, ofOwn), cost.cpuUS),
		median(part(rounds, ofDatabase), cost.cpuUS))
}

func (b *bench) beatOver(
	ctx context.Context, what string, db *database, held, rounds int,
) (single, batched []remote, err error) {
	s, drop, err := b.spawnOn(ctx, what, db)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.end(), drop()) }()
	c, err := client.New(client.Config{Server: s.addr})
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	leases := make([]lessor.LeaseID, held)
	if what == childLessor {
		if leases, err = holdOver(ctx, c, held); err != nil {
			return nil, nil, err
		}
	}
	calls, batches := b.size.of(30_000, 10_000, 100), b.size.of(3_000, 1_000, 10)
	one := func(ctx context.Context, _, item int) error {
		_, err := c.Heartbeat(ctx, leases[item%held], lessor.Heartbeat{WorkerID: &beater})
		return err
	}
	many := func(ctx context.Context, _, item int) error {
		first := item * httpBeatBatch % held
		_, err := c.HeartbeatAll(ctx, beater, leases[first:first+httpBeatBatch])
		return err
	}
	for range rounds {
		if err := concurrently(ctx, httpCallers, calls/10, one); err != nil { // warm-up
			return nil, nil, err
		}
		r, err := s.measure(db, calls, func() error { return concurrently(ctx, httpCallers, calls, one) })
		if err != nil {
			return nil, nil, err
		}
		single = append(single, r)
		r, err = s.measure(db, batches*httpBeatBatch, func() error {
			return concurrently(ctx, httpBatchers, batches, many)
		})
		if err != nil {
			return nil, nil, err
		}
		batched = append(batched, r)
	}
	return single, batched, nil
}

// holdOver submits n jobs and takes their leases.
func holdOver(ctx context.Context, c *client.Client, n int) ([]lessor.LeaseID, error) {
	if err := submitOver(ctx, c, n); err != nil {
		return nil, err
	}
	return takeAll(ctx, c, n)
}
