package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lessor"
	"lessor/client"
)

const (
	journalBound = 0.8  // times the rate of heartbeats
	againBound   = 1.25 // times the cost of a grant of a job without a journal; the rest is noise
	entrySize    = 1 << 10
)

// journals compares appends to journals with heartbeats over HTTP, one per call, and grants of jobs that have a journal
// with grants of jobs that ran before and have none.
func journals(ctx context.Context, b *bench, db *database) error {
	held, rounds, again := b.size.of(10_000, 5_000, 200), b.size.of(50, 30, 1), b.size.of(15, 9, 1)
	b.setting("%d leases, %d connections; entries of %d bytes; medians of %d alternating rounds, %d of grants", held,
		httpCallers, entrySize, rounds, again)
	var rows []string
	for _, store := range []struct {
		name string
		db   *database
	}{{"SQLite", nil}, {"PostgreSQL", db}} {
		beats, appends, err := b.appendOver(ctx, store.db, held, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", store.name, err)
		}
		rows = append(rows, beatsRow(store.name+", heartbeats", beats), beatsRow(store.name+", appends", appends))
		b.atLeast("appends over heartbeats on "+store.name,
			median(part(appends, ofOwn), cost.rate)/median(part(beats, ofOwn), cost.rate), journalBound)
		without, with, err := b.grantsAgain(ctx, store.db, held/2, again)
		if err != nil {
			return fmt.Errorf("%s: %w", store.name, err)
		}
		rows = append(rows, beatsRow(store.name+", grants without a journal", without),
			beatsRow(store.name+", grants with one", with))
		b.atMost("a grant with a journal over one without on "+store.name,
			median(part(with, ofOwn), cost.wallUS)/median(part(without, ofOwn), cost.wallUS), againBound)
	}
	b.table("|per second|CPU µs each: server|client|database", rows)
	return nil
}

var entryData = []byte(`"` + strings.Repeat("x", entrySize-2) + `"`)

// appendOne appends an entry that no journal has.
func appendOne(ctx context.Context, c *client.Client, id lessor.LeaseID, n int) error {
	_, err := c.Append(ctx, id, lessor.JournalAppend{WorkerID: &beater, Entries: []lessor.JournalAsk{{
		Key: new(fmt.Sprint("step-", n)), Kind: new("step"), Data: entryData,
	}}})
	return err
}

// appendOver measures in short rounds: a machine whose speed changes from second to second is the same to both then.
func (b *bench) appendOver(
	ctx context.Context, db *database, held, rounds int,
) (beats, appends []remote, err error) {
	err = b.withLeases(ctx, db, held, func(s *child, c *client.Client, leases []lessor.LeaseID) error {
		calls, n := b.size.of(3_000, 1_000, 100), 0
		beat := func(ctx context.Context, _, item int) error {
			_, err := c.Heartbeat(ctx, leases[(n+item)%held], lessor.Heartbeat{WorkerID: &beater})
			return err
		}
		appendNext := func(ctx context.Context, _, item int) error {
			return appendOne(ctx, c, leases[(n+item)%held], n+item)
		}
		for range rounds {
			if err := concurrently(ctx, httpCallers, calls/10, beat); err != nil { // warm-up
				return err
			}
			r, err := s.measure(db, calls, func() error { return concurrently(ctx, httpCallers, calls, beat) })
			if err != nil {
				return err
			}
			beats = append(beats, r)
			r, err = s.measure(db, calls, func() error { return concurrently(ctx, httpCallers, calls, appendNext) })
			if err != nil {
				return err
			}
			appends = append(appends, r)
			n += calls
		}
		return nil
	})
	return beats, appends, err
}

// grantsAgain measures grants of jobs that were released before, without and with a journal. Two servers take turns.
func (b *bench) grantsAgain(ctx context.Context, db *database, held, rounds int) (without, with []remote, err error) {
	err = b.withLeases(ctx, db, held, func(s1 *child, plain *client.Client, held1 []lessor.LeaseID) error {
		return b.withLeases(ctx, db, held, func(s2 *child, journaled *client.Client, held2 []lessor.LeaseID) error {
			for round := range rounds {
				r, err := s1.grantAgain(ctx, db, plain, held1, -1)
				if err != nil {
					return err
				}
				without = append(without, r)
				if r, err = s2.grantAgain(ctx, db, journaled, held2, round); err != nil {
					return err
				}
				with = append(with, r)
			}
			return nil
		})
	})
	return without, with, err
}

// grantAgain releases leases, each after an entry of its own unless entry is negative, and measures how they are taken
// again, into leases.
func (c *child) grantAgain(
	ctx context.Context, db *database, by *client.Client, leases []lessor.LeaseID, entry int,
) (remote, error) {
	err := concurrently(ctx, httpCallers, len(leases), func(ctx context.Context, _, item int) error {
		if entry >= 0 {
			if err := appendOne(ctx, by, leases[item], entry); err != nil {
				return err
			}
		}
		return by.Release(ctx, leases[item], lessor.Release{WorkerID: &beater, Reason: new(lessor.ReleaseUndelivered)})
	})
	if err != nil {
		return remote{}, err
	}
	return c.measure(db, len(leases), func() error {
		taken, err := takeAll(ctx, by, len(leases))
		copy(leases, taken)
		return err
	})
}

// withLeases calls fn with a fresh server and leases on it.
func (b *bench) withLeases(
	ctx context.Context, db *database, held int, fn func(*child, *client.Client, []lessor.LeaseID) error,
) (err error) {
	s, drop, err := b.spawnOn(ctx, childLessor, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end(), drop()) }()
	c, err := client.New(client.Config{Server: s.addr})
	if err != nil {
		return err
	}
	defer c.Close()
	leases, err := holdOver(ctx, c, held)
	if err != nil {
		return err
	}
	return fn(s, c, leases)
}
