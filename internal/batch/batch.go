// Package batch gathers concurrent calls: while one batch is being answered, the calls that arrive wait together and
// form the next batch. An idle queue adds no delay, and a busy one needs one commit for many calls. There is no
// timer.
//
// A Queue has many putters and one taker. It is bounded: when it is full, Put fails at once instead of hiding an
// overload behind a growing queue. No owner can fill it alone: an owner with waiting calls may not have more of them
// than the space that is still free.
package batch

import (
	"errors"
	"slices"
	"sync"
)

// The errors of Put.
var (
	ErrFull   = errors.New("too many calls are waiting")
	ErrClosed = errors.New("the queue of calls is closed")
)

// Limit bounds a batch or a queue.
type Limit struct {
	Calls int
	Bytes int
}

// Owner identifies the owner of a call.
type Owner = [16]byte

// Queue holds calls until the next batch.
type Queue[C any] struct {
	limit Limit
	size  func(C) int
	ready chan struct{}

	mu      sync.Mutex
	enough  int // calls that wait when ready receives
	waiting []C
	of      []*share // whose those are that wait
	bytes   int
	closed  bool
	shares  map[Owner]*share
}

// share counts the waiting calls of one owner.
type share struct {
	who Owner
	has Limit
}

// New returns a queue in which up to limit may wait; size is the weight of one call in bytes.
func New[C any](limit Limit, size func(C) int) *Queue[C] {
	return &Queue[C]{limit: limit, size: size, ready: make(chan struct{}, 1), shares: map[Owner]*share{}}
}

// Put adds a call to the next batch.
func (q *Queue[C]) Put(who Owner, c C) error {
	n := q.size(c)
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	own := q.shares[who]
	if own == nil {
		own = &share{who: who}
	}
	free := Limit{q.limit.Calls - len(q.waiting) - 1, q.limit.Bytes - q.bytes - n}
	if free.Calls < 0 || free.Bytes < 0 && len(q.waiting) > 0 || own.exceeds(free, n) {
		q.mu.Unlock()
		return ErrFull
	}
	if own.has.Calls == 0 {
		q.shares[who] = own
	}
	own.has = Limit{own.has.Calls + 1, own.has.Bytes + n}
	q.waiting, q.of = append(q.waiting, c), append(q.of, own)
	q.bytes += n
	q.signal()
	q.mu.Unlock()
	return nil
}

// Ready returns a channel that receives when at least enough calls wait. Only the taker calls Ready and Take.
func (q *Queue[C]) Ready(enough int) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enough = enough
	select {
	case <-q.ready: // a stale signal
	default:
	}
	q.signal()
	return q.ready
}

// Take removes the calls of the next batch, oldest first: as many as fit the limit, and at least one if any waits.
func (q *Queue[C]) Take(limit Limit) []C {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.waiting) && n < limit.Calls {
		b := q.size(q.waiting[n])
		if n > 0 && bytes+b > limit.Bytes {
			break
		}
		bytes += b
		q.give(q.of[n], b)
		n++
	}
	taken := q.waiting[:n:n]
	q.bytes -= bytes
	q.of = slices.Delete(q.of, 0, n)
	if n == len(q.waiting) {
		q.waiting = make([]C, 0, n) // the next batch is mostly as large as this one
		return taken
	}
	q.waiting = append([]C(nil), q.waiting[n:]...)
	return taken
}

// exceeds reports whether an owner with waiting calls would, with another call of n bytes, have more than is free.
func (s *share) exceeds(free Limit, n int) bool {
	return s.has.Calls > 0 && (s.has.Calls+1 > free.Calls || s.has.Bytes+n > free.Bytes)
}

// give removes a call from the share of its owner.
func (q *Queue[C]) give(own *share, bytes int) {
	own.has = Limit{own.has.Calls - 1, own.has.Bytes - bytes}
	if own.has.Calls == 0 {
		delete(q.shares, own.who)
	}
}

// Close refuses every later Put and returns the calls that still wait.
func (q *Queue[C]) Close() []C {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	left := q.waiting
	q.waiting, q.of, q.bytes = nil, nil, 0
	clear(q.shares)
	return left
}

func (q *Queue[C]) signal() {
	if len(q.waiting) < max(1, q.enough) {
		return
	}
	select {
	case q.ready <- struct{}{}:
	default:
	}
}
