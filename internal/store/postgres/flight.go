package postgres

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// flight is a commit on its way. The writer may send the next transaction behind it on another connection. The server
// makes that one wait, where it first builds on this one, until this one has ended.
type flight struct {
	tx     *tx
	stream int64
	n      int64 // of its change; 0 = it wrote nothing
	order  int32 // its lock; see order
	held   bool  // the lock is known to be held
	trip   wire.Trip
	tag    pgconn.CommandTag

	reckoned reckoning // what the guard read

	done chan struct{} // closed when the fields below are known
	err  error
	dead bool // its connection is of no more use
	used bool // there is a change with its number
	lost bool // its outcome is unknown
}

// maxFlights is how many commits may be on their way: one that the server works on, and one behind it.
const maxFlights = 2

// read waits for the server's answer. If the answer is lost, it finds out what became of the commit. A commit counts
// only if the server answers COMMIT: it answers the end of a failed transaction with ROLLBACK.
func (f *flight) read() {
	defer close(f.done)
	err := f.trip.Finish()
	warned := warned(f.tx.conn)
	switch {
	case f.tag.String() == "COMMIT" && f.n > 0 && warned != nil:
		f.resolve(warned)
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
		f.resolve(err)
	}
	if f.used {
		f.tx.store.stream.raise(last{f.stream, f.n})
	}
}

// resolve finds out what became of a commit whose answer is lost because of why.
func (f *flight) resolve(why error) {
	f.err, f.dead = why, true
	if f.n > 0 {
		f.err = f.tx.store.resolve(f.stream, f.n, why)
		f.lost = errors.Is(f.err, scheduler.ErrUnknownOutcome)
		f.used = !f.lost
	}
}

func (f *flight) wait() error {
	<-f.done
	return f.err
}

// over reports whether the commit has ended.
func (f *flight) over() bool {
	select {
	case <-f.done:
		return true
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

// awaitAll waits for all commits on their way and brings the store up to date with them. It returns the error of the
// first that failed. The writer that has the turn calls it.
func (s *Store) awaitAll() (first error) {
	for len(s.flights) > 0 {
		if err := s.awaitOldest(); first == nil {
			first = err
		}
	}
	return first
}

// awaitOldest is awaitAll for the oldest commit.
func (s *Store) awaitOldest() error {
	f := s.flights[0]
	<-f.done
	s.flights = s.flights[1:]
	if f.dead {
		s.abandon(f.tx.conn)
	} else {
		s.keep(f.tx.conn)
	}
	switch {
	case errors.Is(f.err, errStreamLost):
		s.lose("") // the renewal of the store finds out why
	case f.lost: // the next number of the stream is unknown
		if f.stream == s.stream.id.Load() {
			s.stream.forget()
		}
	case f.used && f.stream == s.stream.id.Load():
		s.stream.n = f.n
	}
	if f.err != nil {
		s.epoch.Add(1) // whatever became of it
		return f.err
	}
	f.tx.updateCaches()
	if f.tx.guard {
		s.reckoned.note(f.reckoned.at, f.reckoned.when)
		s.stream.followed.Store(int64(f.reckoned.at))
	}
	if f.tx.saved != nil {
		s.served.Store(nil)
	}
	return nil
}

// lastNumber is the number of the last change that was sent.
func (s *Store) lastNumber() int64 {
	for _, f := range slices.Backward(s.flights) {
		if f.n > 0 {
			return f.n
		}
	}
	return s.stream.n
}

// errBefore: the transaction was built on one that failed.
var errBefore = fmt.Errorf("%w: the transaction before failed", scheduler.ErrAgain)

// await waits for the commits before this transaction. The transaction is repeated if that takes so long that the
// server may have ended it.
func (v *view) await() error {
	if !v.behind || v.err != nil {
		return v.err
	}
	v.behind = false
	start := time.Now()
	if err := v.store.awaitAll(); err != nil || time.Since(start) > v.store.cfg.IdleTimeout/2 {
		v.err = errBefore
	}
	return v.err
}

// order is the lock that a transaction takes when it begins, so that the next one can wait for it.
var order = wire.SQL("select pg_advisory_xact_lock($1::integer, $2::integer)")

// busyFrom is the number of leases in one transaction from which a node counts as busy and sends the next transaction
// behind it.
const busyFrom = 32

// push makes the server begin a transaction that is sent in parts. Its order lock is then held when the rest is sent,
// and the next transaction can wait for it.
func (t *tx) push() {
	if !t.conn.Pipelined() {
		return
	}
	s := t.store
	s.orders = max(1, s.orders+1)
	t.unsent = false
	t.addOrder(s.orders)
	if t.conn.Pipelined() { // else the statement had to be prepared first, and is sent with the rest
		t.order = s.orders
		t.conn.Push()
	}
}

// addOrder takes the lock with a number.
func (t *tx) addOrder(n int32) {
	t.conn.Add(wire.Step{Verb: "keep the order", Stmt: order}, wire.Int4(int32(t.store.stream.id.Load())), wire.Int4(n))
}

// follows makes the server wait for the commit before this transaction, because the statements behind build on it. If
// that commit fails, so does the guard.
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
