package postgres

import (
	"context"
	"fmt"
	"time"

	"lessor/internal/pause"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// A commit whose answer was lost has happened, or may still happen while its backend lives. To settle it, the node
// inserts a void change under the number of the commit; the insert waits for the old backend. If the number is taken,
// the commit happened. The row is then written again as it is, so that this second commit waits for the standbys and
// the first is there too. If the insert succeeds, the commit did not happen and cannot any more; the number is used up.
var (
	voidChange = wire.SQL("insert into change (stream, n, at, void, data) values ($1::bigint, $2::bigint," +
		" " + clockMillis + ", true, '') on conflict (stream, n) do update set at = change.at")
	readVoid = wire.SQL("select void, $3::bigint = 0 or exists (select from change where stream = $1::bigint" +
		" and n = $3)" +
		" from change where stream = $1 and n = $2::bigint")
)

const (
	// resolveTime bounds the search for the outcome: callers wait for it.
	resolveTime = 5 * time.Second
	// resolvePause is the time between two attempts while the server is out of reach.
	resolvePause = 100 * time.Millisecond
)

// resolve finds out what became of the commit with number n, whose answer was lost because of why.
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
		if !pause.For(ctx, resolvePause) {
			return fmt.Errorf("%w: %w; asking again: %w", scheduler.ErrUnknownOutcome, opaque{why}, opaque{err})
		}
	}
}

// opaque keeps the text of an error and hides its kind.
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
	void, before := false, s.lastChange()
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

// A commit waits for the synchronous standbys, if there are any. If that waiting is cancelled (by a cancel request, an
// administrator, a shutdown) the server commits on its own and answers COMMIT with a warning; a standby that is
// promoted then does not have the commit. So a node cancels no commit (wire.Conn.Cancels), and treats one with a
// warning as one whose answer was lost. A later commit that did reach the standbys settles it, since they receive
// everything in order.

// warned returns the fault of a commit that came with a warning, nil if it came without.
func warned(c *wire.Conn) error {
	if c.Warning() == "" {
		return nil
	}
	return fmt.Errorf("commit: %w: the server warned: %s", scheduler.ErrUnreachable, c.Warning())
}
