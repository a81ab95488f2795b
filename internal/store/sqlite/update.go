package sqlite

import (
	"context"
	"errors"
	"fmt"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// errOver is returned by a transaction that is used after its end.
var errOver = errors.New("the transaction is over")

// probeSetting is written by each transaction after a failed write until one succeeds: only a write that reached the
// disk shows that heartbeats can be accepted again.
const probeSetting = "sqlite.probe"

// Update implements scheduler.Store. ctx ends the wait for a turn; it does not interrupt a transaction that has begun.
func (s *Store) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	wait, err := s.Send(ctx, scheduler.Sole, fn)
	if err != nil {
		return err
	}
	return wait()
}

// Send implements scheduler.Store. The commit is in the log when it returns, and on the disk when wait does.
func (s *Store) Send(
	ctx context.Context, _ scheduler.Footing, fn func(scheduler.Tx) error,
) (wait func() error, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if err := s.run(fn); err != nil {
		return nil, err
	}
	number := s.commits
	return func() error {
		err := s.acknowledge(context.Background(), number)
		if err != nil && s.turn.Enter(context.Background()) == nil {
			defer s.leave()
			return s.lost(err)
		}
		return err
	}, nil
}

// Serve implements scheduler.Store. It waits for its turn and for the disk as a heartbeat would, so that a store whose
// writer or whose disk is stuck does not count as serving.
func (s *Store) Serve(ctx context.Context, anew bool) (rules.Serving, error) {
	if err := s.enter(ctx); err != nil {
		return s.clock.known(), err
	}
	defer s.leave()
	if s.ill {
		if err := s.run(func(scheduler.Tx) error { return nil }); err != nil {
			return s.clock.known(), err
		}
	}
	if err := s.acknowledge(ctx, s.commits); err != nil {
		return s.clock.known(), s.lost(err)
	}
	if err := s.files.check(); err != nil {
		return s.clock.known(), s.lost(err)
	}
	reading := s.clock.read()
	serving := s.clock.at(reading)
	if anew {
		serving.Since = reading.Wall
	}
	s.clock.keep(reading, serving)
	return serving, nil
}

// enter waits for the turn. A broken store refuses it.
func (s *Store) enter(ctx context.Context) error {
	err := s.turn.Enter(ctx)
	if err == nil && s.broken != nil {
		s.leave()
		return s.broken
	}
	return err
}

func (s *Store) leave() { s.turn.Leave() }

// run makes one transaction, up to its commit in the log. The caller has the turn.
func (s *Store) run(fn func(scheduler.Tx) error) error {
	if err := exec(s.writer.begin); err != nil {
		return s.lost(fault("begin", err))
	}
	reading := s.clock.read() // after begin: from here on nothing waits
	t := &tx{
		view: view{
			conn: s.writer.conn, now: reading.Wall, serving: s.clock.at(reading),
			left: s.queueRows.left, leases: s.leases.index, seal: s.seal,
		},
		store: s, w: s.writer,
	}
	committed := false
	defer func() { // also when fn panics
		t.err = errOver
		if !committed {
			s.undo()
		}
	}()
	served := t.serving
	var refused error
	if s.ill {
		t.err = fault("probe", s.writer.setting(probeSetting, []byte(reading.Wall.String())))
	}
	if t.err == nil {
		refused = fn(t)
	}
	if t.err == nil && refused == nil {
		t.err = fault("clean the queue", t.cleanQueue())
	}
	switch {
	case t.err != nil: // the transaction has failed, even if fn returned nil
		return s.lost(errors.Join(t.err, unless(refused, t.err)))
	case refused != nil:
		s.clock.keep(reading, served)
		return refused
	}
	if err := s.files.checkLog(); err != nil {
		return s.lost(err)
	}
	s.syncing.writing.Store(true)
	defer s.syncing.writing.Store(false)
	if err := exec(s.writer.commit); err != nil {
		return s.lost(fault("commit", err))
	}
	committed = true
	s.clock.keep(reading, t.serving)
	s.updateCaches(t) // also if the commit cannot be acknowledged: the tables have it
	if err := s.countCommit(); err != nil {
		return s.lost(err)
	}
	s.ill = false
	return nil
}

// countCommit counts the commit that was just written, and notes its position. A transaction that changed nothing has
// no new position. The first commit in a new log is followed by one that stores the next generation.
func (s *Store) countCommit() error {
	at, err := s.files.position()
	if err != nil || at == s.at {
		return err
	}
	s.commits++
	if at.salts != s.at.salts {
		if err := unless(s.nextGeneration(), scheduler.ErrFull); err != nil {
			return err
		}
		if at, err = s.files.position(); err != nil {
			return err
		}
	}
	s.at = at
	s.syncing.written.Store(s.lastCommit())
	return nil
}

// lastCommit is the last commit in the log.
func (s *Store) lastCommit() *commit { return &commit{s.generation, s.commits, s.at} }

// lost records what a failed transaction means for the store. A refused value and a moved row mean nothing.
func (s *Store) lost(err error) error {
	switch {
	case errors.Is(err, scheduler.ErrBadCall), errors.Is(err, scheduler.ErrMoved):
	case errors.Is(err, scheduler.ErrBroken):
		s.ill, s.broken, s.lostFiles = true, err, s.files.check() != nil
	default:
		s.ill = true
	}
	return err
}

// updateCaches updates the caches after a commit.
func (s *Store) updateCaches(t *tx) {
	s.leases.keep()
	s.queueRows.keep()
	s.seqs.limit = max(s.seqs.limit, t.seqLimit)
	for _, h := range t.granted {
		if s.specs.FindAt(&h.Turn) != nil {
			s.specs.Drop(h.Turn.Job)
		}
	}
}

// undo reverts a failed transaction in the file and in the caches. Lanes and specs are dropped from the caches and
// read again when they are needed.
func (s *Store) undo() {
	s.leases.undo()
	s.queueRows.undo()
	s.lanes.clear()
	s.specs.Clear()
	s.rollBack()
}

// rollBack ends the transaction, unless SQLite has done so after an error.
func (s *Store) rollBack() {
	if s.writer.conn.AutocommitEnabled() {
		return
	}
	if err := exec(s.writer.rollback); err != nil && s.broken == nil {
		s.broken = fmt.Errorf("%w: %w", scheduler.ErrBroken, fault("roll back", err))
	}
}
