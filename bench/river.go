package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// riverSetting is what there is to choose in River.
type riverSetting struct {
	batch   int  // jobs an InsertManyFast; 0 = Insert one by one, by many callers
	workers int  // MaxWorkers
	during  bool // insert while working, instead of before
}

func (s riverSetting) String() string {
	insert := fmt.Sprintf("InsertManyFast of %d", s.batch)
	if s.batch == 0 {
		insert = fmt.Sprintf("Insert by %d callers", lifecycleCallers)
	}
	when := "before"
	if s.during {
		when = "during"
	}
	return fmt.Sprintf("%s, %s the work, MaxWorkers %d", insert, when, s.workers)
}

// tuneRiver tries the choices one after the other on a small run, and returns the fastest.
func (b *bench) tuneRiver(ctx context.Context, jobs int) (riverSetting, error) {
	choices := []func(riverSetting) riverSetting{
		func(s riverSetting) riverSetting { return s },
		func(s riverSetting) riverSetting { s.batch = 0; return s },
		func(s riverSetting) riverSetting { s.batch = 100; return s },
		func(s riverSetting) riverSetting { s.workers = 100; return s },
		func(s riverSetting) riverSetting { s.workers = 2000; return s },
		func(s riverSetting) riverSetting { s.workers = river.QueueNumWorkersMax; return s },
		func(s riverSetting) riverSetting { s.during = true; return s },
	}
	best, rate := riverSetting{batch: 1000, workers: 500}, 0.0
	for _, choose := range choices {
		try := choose(best)
		c, err := b.riverLives(ctx, jobs, try)
		if err != nil {
			return best, err
		}
		b.note("river: %v: %.0f jobs/s", try, c.rate())
		if c.rate() > rate {
			best, rate = try, c.rate()
		}
	}
	return best, nil
}

// riverArgs is the job, with the same payload as ours.
type riverArgs struct {
	Customer string `json:"customer"`
	Order    int    `json:"order"`
	Note     string `json:"note"`
}

// Kind implements river.JobArgs.
func (riverArgs) Kind() string { return "bench" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
}

// Work implements river.Worker: as at ours, the job itself takes no time.
func (*riverWorker) Work(context.Context, *river.Job[riverArgs]) error { return nil }

// riverLives inserts and works jobs on a fresh database, and measures both together. A job counts as worked when its
// completion is committed.
func (b *bench) riverLives(ctx context.Context, jobs int, set riverSetting) (c cost, err error) {
	folder, err := os.MkdirTemp(b.folder, "river-bench-")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	db, err := openRiver(ctx, filepath.Join(folder, "river.db"))
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	client, err := newRiver(db, set.workers)
	if err != nil {
		return c, err
	}
	completed, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: jobs + 1, Kinds: []river.EventKind{river.EventKindJobCompleted},
	})
	defer unsubscribe()
	c, err = measure(jobs, func() error {
		if err := riverInsertAndStart(ctx, client, db, jobs, set); err != nil {
			return err
		}
		return await(ctx, completed, jobs)
	})
	if err != nil {
		return c, err
	}
	if err := client.Stop(ctx); err != nil {
		return c, err
	}
	return c, checkRiver(ctx, db, jobs)
}

// riverInsertAndStart inserts the jobs while client works, or before it starts. InsertManyFast of a client that has queues
// panics on SQLite in this version, so a client without queues inserts.
func riverInsertAndStart(ctx context.Context, client *river.Client[*sql.Tx], db *sql.DB, jobs int, set riverSetting) error {
	inserter, err := river.NewClient(riversqlite.New(db), &river.Config{Logger: silent()})
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { return insertRiver(ctx, inserter, jobs, set.batch) },
		func() error { return client.Start(ctx) },
	}
	if set.during {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// openRiver opens the database as River advises for SQLite, one connection, with the same settings as ours.
func openRiver(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)"+
		"&_pragma=synchronous(full)&_pragma=cache_size(-8192)&_pragma=temp_store(memory)&_pragma=wal_autocheckpoint(4000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	migrator, err := rivermigrate.New(riversqlite.New(db), &rivermigrate.Config{Logger: silent()})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	var synchronous int
	if err == nil {
		err = db.QueryRowContext(ctx, "pragma synchronous").Scan(&synchronous)
	}
	if err == nil && synchronous != 2 {
		err = fmt.Errorf("synchronous is %d and not FULL", synchronous)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newRiver(db *sql.DB, workers int) (*river.Client[*sql.Tx], error) {
	kinds := river.NewWorkers()
	river.AddWorker(kinds, &riverWorker{})
	return river.NewClient(riversqlite.New(db), &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers:       kinds,
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: river.FetchPollIntervalMin,
		JobTimeout: -1, // no timer for each job
		Logger:     silent(),
	})
}

func insertRiver(ctx context.Context, client *river.Client[*sql.Tx], jobs, batch int) error {
	args := riverArgs{Customer: "c-1029384", Order: 4711, Note: "forty bytes of text"}
	if batch == 0 {
		return concurrently(ctx, lifecycleCallers, jobs, func(ctx context.Context, _, _ int) error {
			_, err := client.Insert(ctx, args, nil)
			return err
		})
	}
	for left := jobs; left > 0; left -= batch {
		params := make([]river.InsertManyParams, min(left, batch))
		for i := range params {
			params[i].Args = args
		}
		if _, err := client.InsertManyFast(ctx, params); err != nil {
			return err
		}
	}
	return nil
}

// await returns when all jobs were reported as completed.
func await(ctx context.Context, completed <-chan *river.Event, jobs int) error {
	stuck := time.NewTimer(time.Minute)
	defer stuck.Stop()
	for range jobs {
		select {
		case <-completed:
			stuck.Reset(time.Minute)
		case <-stuck.C:
			return errors.New("no job was completed for a minute")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func checkRiver(ctx context.Context, db *sql.DB, jobs int) error {
	var n int
	if err := db.QueryRowContext(ctx, "select count(*) from river_job where state = 'completed'").Scan(&n); err != nil {
		return err
	}
	if n != jobs {
		return fmt.Errorf("%d of %d jobs are completed", n, jobs)
	}
	return nil
}
