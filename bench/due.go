package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	pgstore "lessor/internal/store/postgres"
	"lessor/internal/store/sqlite"
)

const (
	fewDefinitions  = 1000
	manyDefinitions = 100_000
	dueAtOnce       = 20
	dueBound        = 2.0
)

// due measures the transaction of a tick without its jobs, among many definitions and among few: it takes the due
// definitions and advances their clocks.
func due(ctx context.Context, b *bench, db *database) (err error) {
	folder, err := os.MkdirTemp(b.folder, "lessor-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	rounds := b.size.of(400, 150, 5)
	b.setting("each round: one transaction takes %d due definitions and advances their clocks; %d alternating rounds",
		dueAtOnce, rounds)
	var lines []string
	ratios := map[string]float64{}
	for _, kind := range []string{"SQLite", "PostgreSQL"} {
		open := func(size int) (scheduler.Store, error) {
			if kind == "SQLite" {
				return sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(folder, fmt.Sprint(size))})
			}
			name, err := db.create(ctx)
			if err != nil {
				return nil, err
			}
			return pgstore.Open(ctx, pgstore.Config{URL: db.URL(name)})
		}
		few, many, err := b.dueOf(ctx, open, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		for _, c := range []struct {
			size int
			of   cost
		}{{fewDefinitions, few}, {manyDefinitions, many}} {
			lines = append(lines, fmt.Sprintf("%s, %d definitions|%.0f|%.0f|%.2f",
				kind, c.size, c.of.wallUS(), c.of.cpuUS(), c.of.wallUS()/few.wallUS()))
		}
		ratios[kind] = many.wallUS() / few.wallUS()
	}
	b.table("|µs per round|CPU µs per round|times the few", lines)
	for _, kind := range slices.Sorted(maps.Keys(ratios)) {
		b.atMost(kind+", many over few, wall", ratios[kind], dueBound)
	}
	return nil
}

// dueOf measures one kind of store with few and with many definitions, alternately.
func (b *bench) dueOf(
	ctx context.Context, open func(int) (scheduler.Store, error), rounds int,
) (few, many cost, err error) {
	sides := []*dueSide{{size: fewDefinitions}, {size: manyDefinitions}}
	defer func() {
		for _, s := range sides {
			if s.store != nil {
				err = errors.Join(err, s.store.Close())
			}
		}
	}()
	for _, s := range sides {
		store, err := open(s.size)
		if err != nil {
			return few, many, err
		}
		s.store = store
		b.note("due: storing %d definitions", s.size)
		if err := s.fill(ctx); err != nil {
			return few, many, err
		}
	}
	for range rounds {
		for _, s := range sides {
			c, err := timed(1, func() error { return s.round(ctx) })
			if err != nil {
				return few, many, err
			}
			s.cost = s.cost.plus(c)
		}
	}
	return sides[0].cost, sides[1].cost, nil
}

// dueSide is a store with size definitions, whose ticks come one after the other.
type dueSide struct {
	store scheduler.Store
	size  int
	now   lessor.Instant
	cost  cost
}

func (s *dueSide) fill(ctx context.Context) error {
	const page = 1000
	for first := 0; first < s.size; first += page {
		ds := make([]*rules.Definition, page)
		for i := range ds {
			n := first + i
			ds[i] = &rules.Definition{
				ID:       fmt.Sprintf("definition-%06d", n),
				Tenant:   lessor.TenantID{UUID: lessor.UUID{1, byte(n), byte(n >> 8)}},
				Schedule: lessor.Schedule{Type: lessor.ScheduleInterval, Seconds: 3600}, Zone: "UTC",
				Handler: "bench.run", LockKey: "lock", Class: "default", Units: 1, MaxAttempts: 5, Timeout: time.Minute,
				Enabled: true, Overlap: lessor.OverlapSkip, CatchUp: lessor.CatchUpLatest, Failures: 5,
				Cooldown: time.Minute, Payload: []byte("{}"),
				NextTick: lessor.Instant(n + 1), DueAt: lessor.Instant(n + 1),
			}
		}
		if err := s.store.Update(ctx, func(tx scheduler.Tx) error { return tx.SaveDefinitions(ctx, ds) }); err != nil {
			return err
		}
	}
	return nil
}

// round advances the clock until the next definitions are due, takes them, and puts each behind all others.
func (s *dueSide) round(ctx context.Context) error {
	s.now += dueAtOnce
	return s.store.Update(ctx, func(tx scheduler.Tx) error {
		ds, err := tx.DueDefinitions(ctx, s.now, dueAtOnce)
		if err != nil {
			return err
		}
		if len(ds) != dueAtOnce {
			return fmt.Errorf("%d definitions are due, want %d", len(ds), dueAtOnce)
		}
		for _, d := range ds {
			d.NextTick += lessor.Instant(s.size)
			d.DueAt = d.NextTick
		}
		if err := tx.SaveDefinitions(ctx, ds); err != nil {
			return err
		}
		_, err = tx.NextTick(ctx)
		return err
	})
}
