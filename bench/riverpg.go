package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverPGSetting is what there is to choose in River on PostgreSQL.
type riverPGSetting struct {
	riverSetting
	inserters int // callers of InsertManyFast at a time
	pool      int // connections
	pollOnly  bool
}

func (s riverPGSetting) String() string {
	text := fmt.Sprintf("%v, %d connections", s.riverSetting, s.pool)
	if s.batch > 0 {
		text += fmt.Sprintf(", %d inserters", s.inserters)
	}
	if s.pollOnly {
		text += ", PollOnly"
	}
	return text
}

// tuneRiverPG tries the choices one after the other, each on top of the best so far, and returns the fastest.
func (b *bench) tuneRiverPG(ctx context.Context, db *database, jobs int) (riverPGSetting, error) {
	choices := []func(*riverPGSetting){
		func(*riverPGSetting) {},
		func(s *riverPGSetting) { s.batch = 0 },
		func(s *riverPGSetting) { s.batch = 5000 },
		func(s *riverPGSetting) { s.inserters = 4 },
		func(s *riverPGSetting) { s.workers = 100 },
		func(s *riverPGSetting) { s.workers = 2000 },
		func(s *riverPGSetting) { s.workers = river.QueueNumWorkersMax },
		func(s *riverPGSetting) { s.pool = 10 },
		func(s *riverPGSetting) { s.pool = 50 },
		func(s *riverPGSetting) { s.pollOnly = true },
		func(s *riverPGSetting) { s.during = true },
	}
	best, rate := riverPGSetting{riverSetting: riverSetting{batch: 1000, workers: 500}, inserters: 1, pool: 20}, 0.0
	for _, choose := range choices {
		try := best
		choose(&try)
		c, err := b.riverLivesPG(ctx, db, jobs, try)
		if err != nil {
			return best, err
		}
		b.note("river: %v: %.0f jobs/s", try, c.own.rate())
		if c.own.rate() > rate {
			best, rate = try, c.own.rate()
		}
	}
	return best, nil
}

// riverLivesPG inserts and works jobs on a fresh database, and measures both together. A job counts as worked when its
// completion is committed.
func (b *bench) riverLivesPG(ctx context.Context, db *database, jobs int, set riverPGSetting) (c shared, err error) {
	name, err := db.create(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, db.drop(ctx, name)) }()
	pool, err := openRiverPG(ctx, db.URL(name), set.pool)
	if err != nil {
		return c, err
	}
	defer pool.Close()
	client, err := newRiverPG(pool, set)
	if err != nil {
		return c, err
	}
	completed, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: jobs + 1, Kinds: []river.EventKind{river.EventKindJobCompleted},
	})
	defer unsubscribe()
	c, err = db.measure(jobs, func() error {
		steps := []func() error{
			func() error { return insertRiverPG(ctx, client, jobs, set) },
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
		return await(ctx, completed, jobs)
	})
	if err != nil {
		return c, err
	}
	if err := client.Stop(ctx); err != nil {
		return c, err
	}
	return c, checkRiverPG(ctx, pool, jobs)
}

// openRiverPG connects to a fresh database and migrates it. Every connection is made before anything is measured.
func openRiverPG(ctx context.Context, url string, conns int) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns, cfg.MinConns = int32(conns), int32(conns)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: silent()})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

func newRiverPG(pool *pgxpool.Pool, set riverPGSetting) (*river.Client[pgx.Tx], error) {
	kinds := river.NewWorkers()
	river.AddWorker(kinds, &riverWorker{})
	return river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: set.workers}},
		Workers:       kinds,
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: river.FetchPollIntervalMin,
		JobTimeout: -1, // no timer for each job
		PollOnly:   set.pollOnly,
		Logger:     silent(),
	})
}

func insertRiverPG(ctx context.Context, client *river.Client[pgx.Tx], jobs int, set riverPGSetting) error {
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

func checkRiverPG(ctx context.Context, pool *pgxpool.Pool, jobs int) error {
	var n int
	if err := pool.QueryRow(ctx, "select count(*) from river_job where state = 'completed'").Scan(&n); err != nil {
		return err
	}
	if n != jobs {
		return fmt.Errorf("%d of %d jobs are completed", n, jobs)
	}
	return nil
}
