package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverPGSetting is a choice of River's settings on PostgreSQL.
type riverPGSetting struct {
	riverSetting
	pool     int // connections
	pollOnly bool
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

// tuneRiverPG finds the fastest setting on a small run.
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
	first := riverPGSetting{riverSetting: riverSetting{batch: 1000, inserters: 1, workers: 500}, pool: 20}
	return tune(b, first, choices, func(s riverPGSetting) (cost, error) {
		c, err := b.riverLivesPG(ctx, db, jobs, s)
		return c.own, err
	})
}

// riverLivesPG is riverLives on PostgreSQL.
func (b *bench) riverLivesPG(ctx context.Context, db *database, jobs int, set riverPGSetting) (c shared, err error) {
	err = db.withRiver(ctx, jobs, set, func(client *river.Client[pgx.Tx]) error {
		return workRiver(ctx, client, client, jobs, set.riverSetting, func(fn func() error) (err error) {
			c, err = db.measure(jobs, fn)
			return err
		})
	})
	return c, err
}

// riverPhases measures inserting and working jobs one after the other.
func (b *bench) riverPhases(ctx context.Context, db *database, jobs int, set riverPGSetting) (p phases, err error) {
	err = db.withRiver(ctx, jobs, set, func(client *river.Client[pgx.Tx]) (err error) {
		p.insert, err = db.measure(jobs, func() error { return insertRiver(ctx, client, jobs, set.riverSetting) })
		if err != nil {
			return err
		}
		completed, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{
			ChanSize: jobs + 1, Kinds: []river.EventKind{river.EventKindJobCompleted},
		})
		defer unsubscribe()
		p.work, err = db.measure(jobs, func() error {
			if err := client.Start(ctx); err != nil {
				return err
			}
			return await(ctx, completed, jobs)
		})
		return errors.Join(err, client.Stop(ctx))
	})
	return p, err
}

// withRiver runs fn, which completes jobs, on a fresh database.
func (d *database) withRiver(
	ctx context.Context, jobs int, set riverPGSetting, fn func(*river.Client[pgx.Tx]) error,
) (err error) {
	name, err := d.create(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.drop(ctx, name)) }()
	pool, err := openRiverPG(ctx, d.URL(name), set.pool)
	if err != nil {
		return err
	}
	defer pool.Close()
	cfg := riverConfig(set.riverSetting)
	cfg.PollOnly = set.pollOnly
	client, err := river.NewClient(riverpgxv5.New(pool), cfg)
	if err != nil {
		return err
	}
	if err := fn(client); err != nil {
		return err
	}
	var n int
	err = pool.QueryRow(ctx, completedRiver).Scan(&n)
	return errors.Join(err, checkRiver(n, jobs))
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
