package postgres

import (
	"context"
	"fmt"
	"time"

	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// A commit whose answer was lost either happened, or may still happen while its backend lives. To find out, and to settle it,
// its change row is inserted as a void one under the same number. The insert waits for the old backend. If it finds the row
// taken, the commit happened; the row is written again as it is, so that this commit waits for the standbys, and the one in doubt is there
// too. If it gets in, the commit did not happen and cannot any more; the number is used up.
var (
	voidChange = wire.SQL("insert into change (stream, n, at, void, data) values ($1::bigint, $2::bigint," +
		" floor(extract(epoch from clock_timestamp()) * 1000)::bigint, true, '') on conflict (stream, n) do update set at = change.at")
	readVoid = wire.SQL("select void, $3::bigint = 0 or exists (select from change where stream = $1::bigint and n = $3)" +
		" from change where stream = $1 and n = $2::bigint")
)

const (
	// resolveTime bounds the finding out: callers wait for it.
	resolveTime = 5 * time.Second
	// resolvePause is between two attempts, while the server is out of reach.
	resolvePause = 100 * time.Millisecond
)

// resolve finds out what became of the commit with number n, whose answer was lost with why.
func (s *Store) resolve(stream, n int64, why error) error {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTime)
	defer cancel()
	for {
		committed, err := s.resolveOnce(ctx, stream, n)
		if err == nil {
			if committed {
				return nil
			}
			return fmt.Errorf("%w: the connection was lost before the commit: %w", scheduler.ErrUnreachable, why)
		}
		pause := time.NewTimer(resolvePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("%w: %w; asking again: %w", scheduler.ErrUnknownOutcome, opaque{why}, opaque{err})
		}
	}
}

// opaque keeps the text of an error whose kind no longer counts.
type opaque struct{ error }

func (opaque) Unwrap() error { return nil }

func (s *Store) resolveOnce(ctx context.Context, stream, n int64) (committed bool, err error) {
	l := wire.Limits{Idle: s.cfg.IdleTimeout, Lock: resolveTime, Statement: resolveTime}
	c, err := s.dialer.Dial(ctx, l)
	if err != nil {
		return false, err
	}
	defer func() { _ = c.Close() }()
	c.Context = ctx
	void, before := false, s.lastKept()
	if before.stream != stream {
		before.n = 0
	}
	c.Begin(begin, l)
	c.Add(wire.Step{Verb: "void the commit", Stmt: voidChange}, wire.Int8(stream), wire.Int8(n))
	c.Add(wire.Step{Verb: "commit", Stmt: commit})
	c.Add(wire.Step{Verb: "read the change", Stmt: readVoid, Each: func(r *wire.Row) error {
		if void = r.Flag(); !r.Flag() {
			s.lose("changes that this node made are gone")
		}
		return nil
	}}, wire.Int8(stream), wire.Int8(n), wire.Int8(before.n))
	if err = c.Send(); err == nil {
		err = warned(c)
	}
	return err == nil && !void, err
}
