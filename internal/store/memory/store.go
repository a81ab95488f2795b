package memory

import (
	"context"
	"fmt"
	"io"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// errClosed is the error of a closed store.
var errClosed = fmt.Errorf("%w: it was closed", scheduler.ErrUnreachable)

// Store is a scheduler.Store: the database as one node uses it.
type Store struct {
	*common
	node string
	// All below is kept by mu.
	db       *Database
	closed   bool
	writing  *tx       // the transaction that has the turn
	busy     bool      // a transaction has the turn
	flights  []*flight // the commits that were sent, oldest first; the next writer forgets those that have ended
	decided  int
	seqs     seqs
	stream   ownStream
	origin   origin
	sole     bool // no other node works here, as far as the last Serve saw
	served   lessor.Instant
	notedAt  time.Duration      // when Serve last succeeded, on the node's clock; 0 = never
	clock    rules.ClockReading // the last reading of the database's clock
	tidied   lessor.Instant
	newestAt []changeAt
	spare    *view // that no reader uses
}

var _ scheduler.Store = (*Store)(nil)

// Open returns the store of one node. After a crash the node opens another one.
func (d *Database) Open(node string) *Store {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &Store{common: d.common, db: d, node: node}
	s.newStream()
	return s
}

// Repoint makes a node use another database from now on, as behind a pooler: a promoted standby, or a restored copy.
// The transaction at work is lost. Commits on their way have their fate in the old database; those that the new one
// does not have are lost for this node.
func (s *Store) Repoint(d *Database) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandon()
	for _, f := range s.flights {
		if f.n > 0 && !d.state.changes.has(key{n: f.stream, m: f.n}) {
			f.err = fmt.Errorf("%w before the commit", scheduler.ErrDisconnected)
		}
	}
	s.db = d
}

// Kill is the crash of the node: its transaction is rolled back, and commits on their way have their fate.
func (s *Store) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.abandon()
}

func (s *Store) abandon() {
	if s.writing != nil {
		s.writing.kill()
	}
	for _, f := range s.flights {
		_ = s.decideThrough(f) // the sender has the error
	}
}

// Close waits for the transaction at work. It may be called more than once.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for s.busy {
		s.await(s.node, "the writer")
	}
	s.abandon()
	return nil
}

// Shared implements scheduler.Store.
func (*Store) Shared() bool { return true }

// Seal implements scheduler.Store.
func (s *Store) Seal() *rules.Seal { return s.seal }

// Check implements scheduler.Store.
func (s *Store) Check(context.Context) []scheduler.Finding {
	return []scheduler.Finding{{Name: "memory", OK: true, Detail: "nothing is kept beyond the process"}}
}

// Backup implements scheduler.Store. Copy is the way.
func (s *Store) Backup(context.Context, io.Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	return &lessor.Error{Code: lessor.CodeConflict, Detail: "a store in memory has no backups: copy the database"}
}

// serving begins an act of the node outside transactions, and returns with mu held.
func (s *Store) asServer(ctx context.Context, point string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("wait to serve: %w", context.Cause(ctx))
	}
	s.reach(s.node, point)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	return nil
}

// Rate implements scheduler.Store.
func (s *Store) Rate(ctx context.Context, busy int, life time.Duration) (int, error) {
	if err := s.asServer(ctx, "rate"); err != nil {
		return busy, err
	}
	defer s.mu.Unlock()
	now, highest := s.db.Clock(), busy
	s.db.noteStream(s.stream.id, func(r *stream) { r.busy, r.ratedAt = busy, now })
	for _, r := range s.db.streams.all() {
		if now.Sub(r.ratedAt).Abs() < life {
			highest = max(highest, r.busy)
		}
	}
	return highest, nil
}

// ExchangeWorkers implements scheduler.Store.
func (s *Store) ExchangeWorkers(ctx context.Context, known []byte, life time.Duration) (others [][]byte, err error) {
	if err := s.asServer(ctx, "exchange workers"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	now := s.db.Clock()
	s.db.noteStream(s.stream.id, func(r *stream) { r.workers, r.metAt = known, now })
	for k, r := range s.db.streams.all() {
		if k.n != s.stream.id && r.workers != nil && now.Sub(r.metAt).Abs() < life {
			others = append(others, r.workers)
		}
	}
	return others, nil
}
