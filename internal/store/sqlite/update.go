package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// errOver is what a transaction answers when it is used after its end.
var errOver = errors.New("the transaction is over")

// probeSetting is written by the first transactions after a failed write: only a write that reached the disk shows that
// heartbeats can be accepted again.
const probeSetting = "sqlite.probe"

// Update implements scheduler.Store. ctx ends the waiting for a turn; what has begun is not interrupted.
func (s *Store) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.run(fn)
}

// Serve implements scheduler.Store. It waits for its turn like a heartbeat would, so that a writer who is stuck does not
// count as serving.
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
	if err := s.files.check(); err != nil {
		return s.clock.known(), s.lost(err)
	}
	tick := s.clock.read()
	serving := s.clock.at(tick)
	if anew {
		serving.Since = tick.Wall
	}
	s.clock.keep(tick, serving)
	return serving, nil
}

// enter waits for the turn. A context that is done gets none, even if one is free.
func (s *Store) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("wait for the writer: %w", context.Cause(ctx))
	}
	select {
	case <-s.turn:
	case <-s.closed:
		return errClosed
	case <-ctx.Done():
		return fmt.Errorf("wait for the writer: %w", context.Cause(ctx))
	}
	select {
	case <-s.closed: // both were ready
		s.leave()
		return errClosed
	default:
	}
	if s.broken != nil {
		s.leave()
		return s.broken
	}
	return nil
}

func (s *Store) leave() { s.turn <- struct{}{} }

// run is one transaction of who has the turn.
func (s *Store) run(fn func(scheduler.Tx) error) error {
	if err := exec(s.writer.begin); err != nil {
		return s.lost(fault("begin", err))
	}
	tick := s.clock.read() // after begin: nothing is waited for from here on
	t := &tx{
		view:  view{conn: s.writer.conn, now: tick.Wall, serving: s.clock.at(tick), left: s.line.left, leases: s.leases.index, seal: s.seal},
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
		t.err = fault("probe", s.writer.setting(probeSetting, []byte(tick.Wall.String())))
	}
	if t.err == nil {
		refused = fn(t)
	}
	number := s.commits
	if t.err == nil && refused == nil {
		t.err = fault("tidy the queue", t.tidy())
	}
	if t.err == nil && refused == nil {
		number, t.err = s.number()
	}
	switch {
	case t.err != nil: // whatever fn made of it, the transaction is spoilt
		return s.lost(errors.Join(t.err, unless(refused, t.err)))
	case refused != nil:
		s.clock.keep(tick, served)
		return refused
	}
	if err := s.files.checkLog(); err != nil {
		return s.lost(err)
	}
	if err := exec(s.writer.commit); err != nil {
		return s.lost(fault("commit", err))
	}
	committed = true
	if err := s.acknowledge(number); err != nil {
		return s.lost(err)
	}
	s.ill = false
	s.clock.keep(tick, t.serving)
	s.settle(t)
	return nil
}

// number returns the number of the commit that is about to be made, and stores it if the transaction changed something.
func (s *Store) number() (int64, error) {
	changes, err := s.writer.totalChanges()
	if err != nil || changes == s.changes {
		return s.commits, fault("count changes", err)
	}
	next := s.commits + 1
	s.changes = changes + 1 // the number is a change too
	return next, fault("number the commit", s.writer.setting(commitsSetting, strconv.AppendInt(nil, next, 10)))
}

// acknowledge makes sure that a commit can be found again before anybody is told of it: the files are those that were
// opened, as of a moment ago, and the mark says so.
func (s *Store) acknowledge(number int64) error {
	if err := s.files.checkBusy(); err != nil {
		return err
	}
	if number == s.commits {
		return nil
	}
	if err := s.mark.write(number); err != nil {
		return fmt.Errorf("%w: mark the commit: %w", scheduler.ErrBroken, err)
	}
	s.commits = number
	return nil
}

// lost notes what a failed transaction says about the store. A value that was refused and a row that has moved say
// nothing against it.
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

// settle makes the caches those of a transaction that was committed.
func (s *Store) settle(t *tx) {
	s.leases.keep()
	s.line.keep()
	s.seqs.limit = max(s.seqs.limit, t.seqLimit)
	for _, h := range t.granted {
		if s.specs.findAt(&h.Turn) != nil {
			s.specs.drop(h.Turn.Job)
		}
	}
}

// undo takes back what a failed transaction did, in the file and in the caches. A full disk or an I/O error has already
// ended the transaction. Lanes and specs are simply forgotten: they are read again when they are needed.
func (s *Store) undo() {
	s.leases.undo()
	s.line.undo()
	s.lanes.clear()
	s.specs.clear()
	if s.writer.conn.AutocommitEnabled() {
		return
	}
	if err := exec(s.writer.rollback); err != nil && s.broken == nil {
		s.broken = fmt.Errorf("%w: %w", scheduler.ErrBroken, fault("roll back", err))
	}
}
