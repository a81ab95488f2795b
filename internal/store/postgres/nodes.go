package postgres

import (
	"context"
	"fmt"
	"time"

	"lessor/internal/store/postgres/wire"
)

// A node's busy rating and what it knows of its workers stand in the row of its stream.
var (
	rate        = wire.SQL("update stream set busy = $2::bigint, rated_at = " + clockMillis + " where id = $1::bigint")
	readRatings = wire.SQL("select coalesce(max(busy), 0) from stream" +
		" where abs(rated_at - " + clockMillis + ") < $1::bigint")
	noteWorkers = wire.SQL("update stream set workers = $2::bytea, met_at = " + clockMillis + " where id = $1::bigint")
	readWorkers = wire.SQL("select workers from stream where id <> $1::bigint and workers is not null" +
		" and abs(met_at - " + clockMillis + ") < $2::bigint")
)

// Rate implements scheduler.Store.
func (s *Store) Rate(ctx context.Context, busy int, life time.Duration) (int, error) {
	highest := int64(busy)
	err := s.asServer(ctx, func(c *wire.Conn) error {
		return unflushed(c, brief, func() {
			c.Add(wire.Step{Verb: "rate", Stmt: rate}, wire.Int8(s.stream.id.Load()), wire.Int8(int64(busy)))
			c.Add(wire.Step{Verb: "read ratings", Stmt: readRatings, Each: func(r *wire.Row) error {
				highest = max(highest, r.Int())
				return nil
			}}, wire.Int8(life.Milliseconds()))
		})
	})
	if err != nil {
		return busy, fmt.Errorf("rate: %w", err)
	}
	return int(highest), nil
}

// ExchangeWorkers implements scheduler.Store.
func (s *Store) ExchangeWorkers(ctx context.Context, known []byte, life time.Duration) (others [][]byte, err error) {
	err = s.asServer(ctx, func(c *wire.Conn) error {
		id := wire.Int8(s.stream.id.Load())
		return unflushed(c, brief, func() {
			c.Add(wire.Step{Verb: "note workers", Stmt: noteWorkers}, id, known)
			c.Add(wire.Step{Verb: "read workers of others", Stmt: readWorkers, Each: func(r *wire.Row) error {
				others = append(others, r.Bytes())
				return nil
			}}, id, wire.Int8(life.Milliseconds()))
		})
	})
	if err != nil {
		return nil, fmt.Errorf("exchange workers: %w", err)
	}
	return others, nil
}

var noFlush = wire.SQL("select set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '1000', true)")

// unflushed runs a transaction whose commit does not wait for the disk.
func unflushed(c *wire.Conn, l wire.Limits, add func()) error {
	c.Begin(begin, l)
	c.Add(wire.Step{Verb: "begin", Stmt: noFlush})
	add()
	c.Add(wire.Step{Verb: "commit", Stmt: commit})
	return c.Send()
}
