// Package batch gathers concurrent calls: while one batch is being answered, the calls that arrive wait together and
// form the next. An idle queue adds no delay; a busy one pays one commit for many calls. It needs no timer.
//
// A Queue has many putters and one taker. It is bounded: when it is full, Put says so at once instead of hiding an
// overload behind a growing line. Nobody can fill it alone: whoever has calls waiting may not have more than there is
// room left for.
package batch

import (
	"errors"
	"slices"
	"sync"
)

// Errors of Put.
var (
	ErrFull   = errors.New("too many calls are waiting")
	ErrClosed = errors.New("nobody takes calls any more")
)

// Limit bounds a batch or a queue.
type Limit struct {
	Calls int
	Bytes int
}

// Owner is whose a call is.
type Owner = [16]byte

// Queue is where calls wait for the next batch.
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

// share is what one owner has waiting.
type share struct {
	who Owner
	has Limit
}

// New returns a queue in which up to limit may wait; size is the weight of one call in bytes.
func New[C any](limit Limit, size func(C) int) *Queue[C] {
	return &Queue[C]{limit: limit, size: size, ready: make(chan struct{}, 1), shares: map[Owner]*share{}}
}

// Put adds somebody's call to the next batch.
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

// Ready receives when at least so many calls wait. It belongs to the taker, as does Take.
func (q *Queue[C]) Ready(enough int) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enough = enough
	select {
	case <-q.ready: // of before
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
		q.waiting = nil
		return taken
	}
	q.waiting = append([]C(nil), q.waiting[n:]...)
	return taken
}

// exceeds reports whether an owner that has calls waiting would have more than is free with another of n bytes.
func (s *share) exceeds(free Limit, n int) bool {
	return s.has.Calls > 0 && (s.has.Calls+1 > free.Calls || s.has.Bytes+n > free.Bytes)
}

// give takes a call from what its owner has waiting.
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
