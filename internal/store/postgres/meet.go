package postgres

import (
	"context"
	"fmt"
	"time"

	"lessor/internal/store/postgres/wire"
)

// What a node knows of its workers stands in the row of its stream.
var (
	meet = wire.SQL("update stream set workers = $2::bytea, met_at = floor(extract(epoch from clock_timestamp()) * 1000)::bigint" +
		" where id = $1::bigint")
	readMet = wire.SQL("select workers from stream where id <> $1::bigint and workers is not null" +
		" and abs(met_at - floor(extract(epoch from clock_timestamp()) * 1000)::bigint) < $2::bigint")
)

// ExchangeWorkers implements scheduler.Store.
func (s *Store) ExchangeWorkers(ctx context.Context, known []byte, life time.Duration) (others [][]byte, err error) {
	err = s.asServer(ctx, func(c *wire.Conn) error {
		id := wire.Int8(s.stream.id.Load())
		c.Begin(begin, brief)
		c.Add(wire.Step{Verb: "begin", Stmt: noFlush})
		c.Add(wire.Step{Verb: "meet", Stmt: meet}, id, known)
		c.Add(wire.Step{Verb: "read whom others met", Stmt: readMet, Each: func(r *wire.Row) error {
			others = append(others, r.Bytes())
			return nil
		}}, id, wire.Int8(life.Milliseconds()))
		c.Add(wire.Step{Verb: "commit", Stmt: commit})
		return c.Send()
	})
	if err != nil {
		return nil, fmt.Errorf("exchange workers: %w", err)
	}
	return others, nil
}
