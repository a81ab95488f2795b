// Package batch gathers concurrent calls: while one batch is being answered, the calls that arrive wait together and
// form the next. An idle queue adds no delay; a busy one pays one commit for many calls. It needs no timer.
//
// A Queue has many putters and one taker. It is bounded: when it is full, Put says so at once instead of hiding an
// overload behind a growing line.
package batch

import (
	"errors"
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

// Queue is where calls wait for the next batch.
type Queue[C any] struct {
	limit Limit
	size  func(C) int
	ready chan struct{}

	mu      sync.Mutex
	enough  int // calls that wait when ready receives
	waiting []C
	bytes   int
	closed  bool
}

// New returns a queue in which up to limit may wait; size is the weight of one call in bytes.
func New[C any](limit Limit, size func(C) int) *Queue[C] {
	return &Queue[C]{limit: limit, size: size, ready: make(chan struct{}, 1)}
}

// Put adds a call to the next batch.
func (q *Queue[C]) Put(c C) error {
	n := q.size(c)
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	if len(q.waiting) >= q.limit.Calls || q.bytes+n > q.limit.Bytes && len(q.waiting) > 0 {
		q.mu.Unlock()
		return ErrFull
	}
	q.waiting = append(q.waiting, c)
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
		n++
	}
	taken := q.waiting[:n:n]
	q.bytes -= bytes
	if n == len(q.waiting) {
		q.waiting = nil
		return taken
	}
	q.waiting = append([]C(nil), q.waiting[n:]...)
	return taken
}

// Close refuses every later Put and returns the calls that still wait.
func (q *Queue[C]) Close() []C {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	left := q.waiting
	q.waiting, q.bytes = nil, 0
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
