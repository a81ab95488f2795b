package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lessor"
	"lessor/client"
)

const (
	httpCallers   = 64  // connections of single heartbeats
	httpBeatBatch = 100 // leases of a batched heartbeat
	httpBatchers  = 8   // concurrent batched heartbeats

	singleBound      = 0.7 // times a bare handler
	batchBoundSQLite = 0.5
	batchBoundPG     = 0.35
)

// beatServer is a server that gets heartbeats over HTTP.
type beatServer struct {
	name            string
	db              *database
	server          *child
	drop            func() error
	client          *client.Client
	leases          []lessor.LeaseID
	single, batched []remote // one entry for each round
}

// heartbeats measures heartbeats over HTTP, one per call and in batches, next to a handler that only speaks HTTP and
// JSON. The servers take turns in each round, so that all have the same share of the machine.
func heartbeats(ctx context.Context, b *bench, db *database) (err error) {
	held, rounds := b.size.of(10_000, 10_000, 200), b.size.of(7, 3, 1)
	var all []*beatServer
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.end())
		}
	}()
	for _, kind := range []struct {
		name, what string
		db         *database
	}{{"bare handler", childBare, nil}, {"SQLite", childLessor, nil}, {"PostgreSQL", childLessor, db}} {
		s, err := b.beatable(ctx, kind.name, kind.what, kind.db, held)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		all = append(all, s)
	}
	for range rounds {
		for _, s := range all {
			if err := b.beatRound(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	b.setting("%d leases; single calls on %d connections, calls of %d leases on %d; medians of %d alternating rounds",
		held, httpCallers, httpBeatBatch, httpBatchers, rounds)
	var rows []string
	for _, s := range all {
		rows = append(rows, beatsRow(s.name+", single", s.single), beatsRow(s.name+", calls of 100", s.batched))
	}
	b.table("heartbeats|per second|CPU µs each: server|client|database", rows)
	bare, sqlite, pg := all[0], all[1], all[2]
	b.atLeast("single heartbeats on SQLite over a bare handler", times(sqlite.single, bare.single), singleBound)
	b.setting("single heartbeats on PostgreSQL over a bare handler: %.2f", times(pg.single, bare.single))
	b.atLeast("heartbeats in calls of 100 on SQLite", times(sqlite.batched, bare.batched), batchBoundSQLite)
	b.atLeast("heartbeats in calls of 100 on PostgreSQL", times(pg.batched, bare.batched), batchBoundPG)
	return nil
}

// times returns the median of the ratios of the rates, round by round.
func times(ours, theirs []remote) float64 {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = ours[i].own.rate() / theirs[i].own.rate()
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

func beatsRow(name string, rounds []remote) string {
	return fmt.Sprintf("%s|%.0f|%.1f|%.1f|%.1f", name, median(part(rounds, ofOwn), cost.rate),
		median(part(rounds, ofServer), cost.cpuUS), median(part(rounds, ofOwn), cost.cpuUS),
		median(part(rounds, ofDatabase), cost.cpuUS))
}

// beatable starts a server with leases.
func (b *bench) beatable(ctx context.Context, name, what string, db *database, held int) (*beatServer, error) {
	server, drop, err := b.spawnOn(ctx, what, db)
	if err != nil {
		return nil, err
	}
	s := &beatServer{name: name, db: db, server: server, drop: drop, leases: make([]lessor.LeaseID, held)}
	s.client, err = client.New(client.Config{Server: server.addr})
	if err == nil && what == childLessor {
		s.leases, err = holdOver(ctx, s.client, held)
	}
	if err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

func (s *beatServer) end() error {
	if s.client != nil {
		s.client.Close()
	}
	return errors.Join(s.server.end(), s.drop())
}

func (b *bench) beatRound(ctx context.Context, s *beatServer) error {
	calls, batches := b.size.of(20_000, 10_000, 100), b.size.of(3_000, 1_000, 10)
	one := func(ctx context.Context, _, item int) error {
		_, err := s.client.Heartbeat(ctx, s.leases[item%len(s.leases)], lessor.Heartbeat{WorkerID: &beater})
		return err
	}
	many := func(ctx context.Context, _, item int) error {
		first := item * httpBeatBatch % len(s.leases)
		_, err := s.client.HeartbeatAll(ctx, beater, s.leases[first:first+httpBeatBatch])
		return err
	}
	if err := concurrently(ctx, httpCallers, calls/10, one); err != nil { // warm-up
		return err
	}
	r, err := s.server.measure(s.db, calls, func() error { return concurrently(ctx, httpCallers, calls, one) })
	if err != nil {
		return err
	}
	s.single = append(s.single, r)
	r, err = s.server.measure(s.db, batches*httpBeatBatch, func() error {
		return concurrently(ctx, httpBatchers, batches, many)
	})
	s.batched = append(s.batched, r)
	return err
}
