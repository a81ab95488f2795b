package postgres

import (
	"context"
	"fmt"
	"time"
)

// A rating stands in the row of its node's stream.
var (
	rate = sql("update stream set busy = $2::bigint, rated_at = floor(extract(epoch from clock_timestamp()) * 1000)::bigint" +
		" where id = $1::bigint")
	readRatings = sql("select coalesce(max(busy), 0) from stream" +
		" where abs(rated_at - floor(extract(epoch from clock_timestamp()) * 1000)::bigint) < $1::bigint")
)

// Rate implements scheduler.Store.
func (s *Store) Rate(ctx context.Context, busy int, life time.Duration) (int, error) {
	highest := int64(busy)
	err := s.asServer(ctx, func(c *conn) error {
		c.open(begin, brief)
		c.add(step{verb: "begin", stmt: noFlush})
		c.add(step{verb: "rate", stmt: rate}, int8Of(s.stream.id.Load()), int8Of(int64(busy)))
		c.add(step{verb: "read ratings", stmt: readRatings, each: func(r *row) error {
			highest = max(highest, r.int())
			return nil
		}}, int8Of(life.Milliseconds()))
		c.add(step{verb: "commit", stmt: commit})
		return c.send()
	})
	if err != nil {
		return busy, fmt.Errorf("rate: %w", err)
	}
	return int(highest), nil
}
