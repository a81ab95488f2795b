package postgres

import (
	"context"
	"fmt"
	"time"

	"lessor/internal/store/postgres/wire"
)

// A rating stands in the row of its node's stream.
var (
	rate = wire.SQL("update stream set busy = $2::bigint, rated_at = floor(extract(epoch from clock_timestamp()) * 1000)::bigint" +
		" where id = $1::bigint")
	readRatings = wire.SQL("select coalesce(max(busy), 0) from stream" +
		" where abs(rated_at - floor(extract(epoch from clock_timestamp()) * 1000)::bigint) < $1::bigint")
)

// Rate implements scheduler.Store.
func (s *Store) Rate(ctx context.Context, busy int, life time.Duration) (int, error) {
	highest := int64(busy)
	err := s.asServer(ctx, func(c *wire.Conn) error {
		c.Begin(begin, brief)
		c.Add(wire.Step{Verb: "begin", Stmt: noFlush})
		c.Add(wire.Step{Verb: "rate", Stmt: rate}, wire.Int8(s.stream.id.Load()), wire.Int8(int64(busy)))
		c.Add(wire.Step{Verb: "read ratings", Stmt: readRatings, Each: func(r *wire.Row) error {
			highest = max(highest, r.Int())
			return nil
		}}, wire.Int8(life.Milliseconds()))
		c.Add(wire.Step{Verb: "commit", Stmt: commit})
		return c.Send()
	})
	if err != nil {
		return busy, fmt.Errorf("rate: %w", err)
	}
	return int(highest), nil
}
