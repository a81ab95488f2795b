package sqlite

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"lessor/internal/scheduler"
	"lessor/internal/store"
)

// commit is a commit in the write-ahead log.
type commit struct {
	generation uint32
	number     int64 // commits of the database's life, with this one
	at         position
}

// syncing brings commits to the disk. SQLite writes them into the log and leaves the sync to the store, so that the
// writer begins the next transaction while the disk works (decision 22). One sync covers all commits before it.
type syncing struct {
	turn    store.Turn             // a goroutine that has it may sync the log and write the mark
	data    func(*os.File) error   // syncs a file; nil = commits may be lost when power fails, for tests
	written atomic.Pointer[commit] // the last one in the log
	durable atomic.Pointer[commit] // the last one on the disk
	writing atomic.Bool            // a reader may see a commit that is not in written yet
	failed  error                  // of the sync after which nothing can be trusted; only with the turn
}

// begin starts with a log that is on the disk up to a commit.
func (g *syncing) begin(c *commit) {
	g.written.Store(c)
	g.durable.Store(c)
}

// reached reports whether every commit that a reader can see is on the disk.
func (g *syncing) reached() bool {
	return !g.writing.Load() && g.durable.Load() == g.written.Load()
}

// sync syncs the log. The caller has the turn.
func (g *syncing) sync(log *os.File) error {
	if g.failed != nil {
		return g.failed
	}
	c := g.written.Load() // before the sync, which may miss a later one
	if g.data != nil {
		if err := g.data(log); err != nil {
			g.failed = fmt.Errorf("%w: sync the log: %w", scheduler.ErrBroken, err)
			return g.failed
		}
	}
	g.durable.Store(c)
	return nil
}

// settle waits until every commit that a view can see is on the disk: no caller sees a change that a power failure
// could remove.
func (s *Store) settle(ctx context.Context) error {
	if s.syncing.reached() {
		return nil
	}
	if err := s.syncing.turn.Enter(ctx); err != nil {
		return err
	}
	defer s.syncing.turn.Leave()
	if s.syncing.reached() {
		return nil
	}
	return s.syncing.sync(s.files.log)
}

// acknowledge returns when the commits up to a number are on the disk and can be found again: the files are still
// those that were opened, and the mark holds the position of the last.
func (s *Store) acknowledge(ctx context.Context, number int64) error {
	if err := s.syncing.turn.Enter(ctx); err != nil {
		return err
	}
	defer s.syncing.turn.Leave()
	if s.syncing.durable.Load().number < number {
		if err := s.syncing.sync(s.files.log); err != nil {
			return err
		}
	}
	if err := s.files.checkBusy(); err != nil {
		return err
	}
	if s.mark.commits >= number { // nothing was changed, or a later commit was acknowledged first
		return nil
	}
	return s.writeMark(s.syncing.durable.Load())
}
