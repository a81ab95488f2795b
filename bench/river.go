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

// riverSetting is a choice of River's settings.
type riverSetting struct {
	batch     int  // jobs per InsertManyFast; 0 = Insert one by one, by many callers
	inserters int  // concurrent callers of InsertManyFast
	workers   int  // MaxWorkers
	during    bool // insert while working, instead of before
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

// tune tries the choices in sequence, each on top of the best so far, and returns the fastest setting.
func tune[S any](b *bench, best S, choices []func(*S), run func(S) (cost, error)) (S, error) {
	rate := 0.0
	for _, choose := range choices {
		try := best
		choose(&try)
		c, err := run(try)
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

// tuneRiver finds the fastest setting on a small run.
func (b *bench) tuneRiver(ctx context.Context, jobs int) (riverSetting, error) {
	choices := []func(*riverSetting){
		func(*riverSetting) {},
		func(s *riverSetting) { s.batch = 0 },
		func(s *riverSetting) { s.batch = 100 },
		func(s *riverSetting) { s.workers = 100 },
		func(s *riverSetting) { s.workers = 2000 },
		func(s *riverSetting) { s.workers = river.QueueNumWorkersMax },
		func(s *riverSetting) { s.during = true },
	}
	return tune(b, riverSetting{batch: 1000, inserters: 1, workers: 500}, choices,
		func(s riverSetting) (cost, error) { return b.riverLives(ctx, jobs, s) })
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

// Work implements river.Worker. As for Lessor, the job itself takes no time.
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
	client, err := river.NewClient(riversqlite.New(db), riverConfig(set))
	if err != nil {
		return c, err
	}
	// InsertManyFast of a client with queues panics on SQLite in this version, so a client without queues inserts.
	inserter, err := river.NewClient(riversqlite.New(db), &river.Config{Logger: silent()})
	if err != nil {
		return c, err
	}
	err = workRiver(ctx, client, inserter, jobs, set, func(fn func() error) (err error) {
		c, err = measure(jobs, fn)
		return err
	})
	if err != nil {
		return c, err
	}
	var n int
	err = db.QueryRowContext(ctx, completedRiver).Scan(&n)
	return c, errors.Join(err, checkRiver(n, jobs))
}

// completedRiver counts the completed jobs.
const completedRiver = "select count(*) from river_job where state = 'completed'"

func checkRiver(completed, jobs int) error {
	if completed != jobs {
		return fmt.Errorf("%d of %d jobs are completed", completed, jobs)
	}
	return nil
}

// workRiver inserts jobs while client works, or before it starts, and returns when all are completed. measure runs the
// part that is measured.
func workRiver[T any](
	ctx context.Context, client, inserter *river.Client[T], jobs int, set riverSetting,
	measure func(func() error) error,
) error {
	completed, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: jobs + 1, Kinds: []river.EventKind{river.EventKindJobCompleted},
	})
	defer unsubscribe()
	steps := []func() error{
		func() error { return insertRiver(ctx, inserter, jobs, set) },
		func() error { return client.Start(ctx) },
	}
	if set.during {
		slices.Reverse(steps)
	}
	err := measure(func() error {
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		return await(ctx, completed, jobs)
	})
	if err != nil {
		return err
	}
	return client.Stop(ctx)
}

// openRiver opens the database with one connection, as River advises for SQLite, and with the settings of Lessor.
func openRiver(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)"+
		"&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=cache_size(-8192)"+
		"&_pragma=temp_store(memory)&_pragma=wal_autocheckpoint(4000)")
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

func riverConfig(set riverSetting) *river.Config {
	kinds := river.NewWorkers()
	river.AddWorker(kinds, &riverWorker{})
	return &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: set.workers}},
		Workers:       kinds,
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: river.FetchPollIntervalMin,
		JobTimeout: -1, // no timer for each job
		Logger:     silent(),
	}
}

func insertRiver[T any](ctx context.Context, client *river.Client[T], jobs int, set riverSetting) error {
	args := riverArgs{Customer: "c-1029384", Order: 4711, Note: "forty bytes of text"}
	if set.batch == 0 {
		return concurrently(ctx, lifecycleCallers, jobs, func(ctx context.Context, _, _ int) error {
			_, err := client.Insert(ctx, args, nil)
			return err
		})
	}
	return concurrently(ctx, set.inserters, (jobs+set.batch-1)/set.batch, func(ctx context.Context, _, item int) error {
		params := make([]river.InsertManyParams, min(set.batch, jobs-item*set.batch))
		for i := range params {
			params[i].Args = args
		}
		_, err := client.InsertManyFast(ctx, params)
		return err
	})
}

// await returns when River has reported all jobs as completed.
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
