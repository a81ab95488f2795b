package postgres

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// flight is a commit on its way. Who has the turn may send the next transaction behind it, on another connection: the server has that one wait,
// where it first builds on this one, until this one has ended.
type flight struct {
	tx     *tx
	stream int64
	n      int64 // of its change; 0 = it wrote nothing
	order  int32 // its lock; see order
	held   bool  // the lock is known to be held
	trip   wire.Trip
	tag    pgconn.CommandTag

	reckoned reckoning // what the guard read

	done chan struct{} // closed when what follows is known
	err  error
	told atomic.Bool // who sent it knows
	dead bool        // its connection is of no more use
	used bool        // there is a change with its number
	lost bool        // nobody knows what became of it
}

// maxFlights is how many commits may be on their way: one that the server works on, and one behind it.
const maxFlights = 2

// read waits for the server's answer, and finds out what became of the commit if it is lost. A commit counts only if the server
// says COMMIT: the end of a transaction that failed is answered too, with ROLLBACK.
func (f *flight) read() {
	defer close(f.done)
	err := f.trip.Finish()
	warned := warned(f.tx.conn)
	switch {
	case f.tag.String() == "COMMIT" && f.n > 0 && warned != nil:
		f.settle(warned)
	case f.tag.String() == "COMMIT":
		if f.n > 0 {
			f.tx.store.prove()
		}
		f.dead, f.used = err != nil, f.n > 0 // dead: the server died after it had answered
	case err == nil:
		f.err, f.dead = fmt.Errorf("commit: %w: the server answered %q", scheduler.ErrUnreachable, f.tag.String()), true
	case answered(err):
		f.err = f.tx.suspect(err)
		f.dead = !f.tx.undo(err) // at once: the next one waits for its locks
	default: // the connection was lost with the answer
		f.settle(err)
	}
}

// settle finds out what became of a commit whose answer tells nothing, for the reason why.
func (f *flight) settle(why error) {
	f.err, f.dead = why, true
	if f.n > 0 {
		f.err = f.tx.store.resolve(f.stream, f.n, why)
		f.lost = errors.Is(f.err, scheduler.ErrUnknownOutcome)
		f.used = !f.lost
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

// changes reports whether a commit on its way changes a lease.
func (f *flight) changes(id lessor.LeaseID) bool {
	_, known := f.tx.known[id]
	_, ended := f.tx.ended[id]
	return known || ended
}

// land makes the store what all commits on their way have made of it, and returns what the first that failed did. It belongs to who has the turn.
func (s *Store) land() (first error) {
	for len(s.flights) > 0 {
		if err := s.landOne(); first == nil {
			first = err
		}
	}
	return first
}

// landOne is land for the oldest of them.
func (s *Store) landOne() error {
	f := s.flights[0]
	<-f.done
	s.flights = s.flights[1:]
	if f.dead {
		_ = f.tx.conn.Close() // the reason is known
	} else {
		s.keep(f.tx.conn)
	}
	switch {
	case errors.Is(f.err, errStreamLost):
		s.lose("") // who renews the store finds out
	case f.lost: // nobody knows its next number
		if f.stream == s.stream.id.Load() {
			s.stream.forget()
		}
	case f.used && f.stream == s.stream.id.Load():
		s.stream.n = f.n
		s.stream.kept.Store(&last{f.stream, f.n})
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

// lastNumber is that of the last change that was sent.
func (s *Store) lastNumber() int64 {
	for _, f := range slices.Backward(s.flights) {
		if f.n > 0 {
			return f.n
		}
	}
	return s.stream.n
}

// errBefore: a transaction built on one that failed.
var errBefore = fmt.Errorf("%w: the transaction before failed", scheduler.ErrAgain)

// await waits for the commits before this transaction. If that takes so long that the server may have given up on this one, it is repeated.
func (v *view) await() error {
	if !v.behind || v.err != nil {
		return v.err
	}
	v.behind = false
	start := time.Now()
	if err := v.store.land(); err != nil || time.Since(start) > v.store.cfg.IdleTimeout/2 { // whose commit it was is told
		v.err = errBefore
	}
	return v.err
}

// order is the lock that a transaction takes when it begins, for the next one to wait for.
var order = wire.SQL("select pg_advisory_xact_lock($1::integer, $2::integer)")

// busyFrom is how many leases a transaction of a busy node changes. Others will be sent behind the next one.
const busyFrom = 32

// push has the server begin a transaction that is sent in parts at once. Its order lock is held then when the rest is sent, and the next one can wait for it.
func (t *tx) push() {
	if !t.conn.Pipelined() {
		return
	}
	s := t.store
	s.orders = max(1, s.orders+1)
	t.order, t.unsent = s.orders, false
	t.addOrder(t.order)
	t.conn.Push()
}

// addOrder takes the lock with a number.
func (t *tx) addOrder(n int32) {
	t.conn.Add(wire.Step{Verb: "keep the order", Stmt: order}, wire.Int4(int32(t.store.stream.id.Load())), wire.Int4(n))
}

// follows has the server wait for the commit before this transaction: what stands behind builds on it. If that fails, so does the guard.
func (t *tx) follows() {
	if !t.behind || t.ordered || t.err != nil {
		return
	}
	last := t.store.flights[len(t.store.flights)-1]
	if !last.held {
		_ = t.await() // kept in t.err
		return
	}
	t.ordered = true
	t.addOrder(last.order)
}
