package postgres

import (
	"context"
	"fmt"
	"time"
)

// What a node knows of its workers stands in the row of its stream.
var (
	meet = sql("update stream set workers = $2::bytea, met_at = floor(extract(epoch from clock_timestamp()) * 1000)::bigint" +
		" where id = $1::bigint")
	readMet = sql("select workers from stream where id <> $1::bigint and workers is not null" +
		" and abs(met_at - floor(extract(epoch from clock_timestamp()) * 1000)::bigint) < $2::bigint")
)

// Meet implements scheduler.Store.
func (s *Store) Meet(ctx context.Context, known []byte, life time.Duration) (others [][]byte, err error) {
	err = s.asServer(ctx, func(c *conn) error {
		id := int8Of(s.stream.id.Load())
		c.open(begin, brief)
		c.add(step{verb: "begin", stmt: noFlush})
		c.add(step{verb: "meet", stmt: meet}, id, known)
		c.add(step{verb: "read whom others met", stmt: readMet, each: func(r *row) error {
			others = append(others, r.bytes())
			return nil
		}}, id, int8Of(life.Milliseconds()))
		c.add(step{verb: "commit", stmt: commit})
		return c.send()
	})
	if err != nil {
		return nil, fmt.Errorf("meet: %w", err)
	}
	return others, nil
}
