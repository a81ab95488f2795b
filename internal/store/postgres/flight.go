package postgres

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor/internal/scheduler"
)

// flight is a commit on its way. Who has the turn may begin the next transaction meanwhile; before that one looks at what this one
// wrote, and before its own commit is sent, this one has landed.
type flight struct {
	tx     *tx
	stream int64
	n      int64 // of its change; 0 = it wrote nothing
	trip   trip
	tag    pgconn.CommandTag

	reckoned reckoning // what the guard read

	done chan struct{} // closed when what follows is known
	err  error
	told atomic.Bool // who sent it knows
	dead bool        // its connection is of no more use
	lost bool        // nobody knows what became of it
}

// read waits for the server's answer, and finds out what became of the commit if it is lost. A commit counts only if the server
// says COMMIT: the end of a transaction that failed is answered too, with ROLLBACK.
func (f *flight) read() {
	defer close(f.done)
	err := f.trip.finish()
	switch {
	case f.tag.String() == "COMMIT":
		f.dead = err != nil // the server died after it had answered
	case err == nil:
		f.err, f.dead = fmt.Errorf("commit: %w: the server answered %q", scheduler.ErrUnreachable, f.tag.String()), true
	case answered(err):
		f.err = f.tx.suspect(err)
	default: // the connection was lost with the answer
		f.err, f.dead = err, true
		if f.n > 0 {
			f.err = f.tx.store.resolve(f.stream, f.n, err)
			f.lost = errors.Is(f.err, scheduler.ErrUnknownOutcome)
		}
	}
}

func (f *flight) wait() error {
	<-f.done
	f.told.Store(true)
	return f.err
}

// over reports whether a commit is on its way no more, and nobody needs to be told that it failed.
func (f *flight) over() bool {
	select {
	case <-f.done:
		return f.err == nil || f.told.Load()
	default:
		return false
	}
}

// land makes the store what the commit on its way, if there is one, has made of it. It belongs to who has the turn.
func (s *Store) land() error {
	f := s.flight
	if f == nil {
		return nil
	}
	<-f.done
	s.flight = nil
	switch {
	case f.dead:
		_ = f.tx.conn.close() // the reason is known
	case f.err != nil:
		f.tx.rollback(f.err)
	default:
		s.keep(f.tx.conn)
	}
	switch {
	case f.lost || errors.Is(f.err, errStreamLost): // nobody knows its next number, or would see it
		s.stream.forget()
	case f.n > 0 && (f.err == nil || f.dead): // resolved: the number is used up
		s.stream.n = f.n
	}
	if f.err != nil {
		s.epoch.Add(1) // whatever became of it
		return f.err
	}
	f.tx.settle()
	if f.tx.guard {
		s.reckoned.note(f.reckoned.at, f.reckoned.when)
		s.stream.followed.Store(int64(f.reckoned.at))
	}
	if f.tx.saved != nil {
		s.served.Store(nil)
	}
	return nil
}

// errBefore: a transaction built on one that failed.
var errBefore = fmt.Errorf("%w: the transaction before failed", scheduler.ErrAgain)

// await waits for the commit before this transaction.
func (v *view) await() error {
	f := v.before
	if v.before = nil; f == nil || v.err != nil {
		return v.err
	}
	if f == v.store.flight {
		_ = v.store.land() // its own caller is told
	}
	if f.err != nil {
		v.err = errBefore
	}
	return v.err
}
