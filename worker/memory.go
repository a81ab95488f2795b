package worker

import (
	"bytes"
	"container/heap"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"
)

// DefaultMaxLength is the default of MemoryConfig.MaxLength.
const DefaultMaxLength = 10_000

// MemoryConfig configures a Memory. The zero value takes all defaults.
type MemoryConfig struct {
	// MaxLength is how many messages the mailbox holds, dead letters included. The default is DefaultMaxLength.
	MaxLength int
}

// Memory is a mailbox in this process, for tests and for the parts of one program. Its messages are lost when the
// process ends. A message that comes back goes to the end of the queue, so that a message that always fails does not
// block others.
type Memory struct {
	maxLength int

	mu      sync.Mutex
	closed  bool
	letters map[string]*letter // all but the dead ones
	waiting []*letter          // in the order of delivery
	hidden  hiddenLetters
	dead    []DeadLetter
	wake    chan struct{} // closed and replaced when receivers must check again
}

// letter is one message, in one of three places: waiting, hidden or dead.
type letter struct {
	id         string
	body       []byte
	replyTo    *Memory
	deliveries int
	receipt    string    // of the current delivery, empty while it waits
	until      time.Time // the end of its visibility
	place      int       // in the heap of hidden letters
}

// NewMemory returns an empty mailbox.
func NewMemory(cfg MemoryConfig) *Memory {
	if cfg.MaxLength <= 0 {
		cfg.MaxLength = DefaultMaxLength
	}
	return &Memory{maxLength: cfg.MaxLength, letters: map[string]*letter{}, wake: make(chan struct{})}
}

// Send implements Mailbox.
func (b *Memory) Send(ctx context.Context, body []byte, replyTo Mailbox) (id string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := CheckBody(body); err != nil {
		return "", err
	}
	l := &letter{id: rand.Text(), body: bytes.Clone(body)}
	if replyTo != nil {
		var same bool
		if l.replyTo, same = replyTo.(*Memory); !same {
			return "", fmt.Errorf("replies from a mailbox in memory cannot go to a %T", replyTo)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return "", ErrMailboxClosed
	case len(b.letters)+len(b.dead) >= b.maxLength:
		return "", ErrMailboxFull
	}
	b.letters[l.id] = l
	b.wait(l)
	return l.id, nil
}

// Receive implements Mailbox.
func (b *Memory) Receive(ctx context.Context, maxMessages int, visibility, wait time.Duration) ([]Message, error) {
	if err := CheckReceive(maxMessages, visibility, wait); err != nil {
		return nil, err
	}
	until := time.Now().Add(wait)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		messages, recheck, err := b.take(maxMessages, visibility)
		left := time.Until(until)
		if err != nil || len(messages) > 0 || left <= 0 {
			return messages, err
		}
		timer := time.NewTimer(min(left, recheck.within))
		select {
		case <-timer.C:
		case <-recheck.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// recheck says when a receiver that found no message must check again.
type recheck struct {
	wake   <-chan struct{}
	within time.Duration
}

// take delivers waiting letters.
func (b *Memory) take(maxMessages int, visibility time.Duration) ([]Message, recheck, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, recheck{}, ErrMailboxClosed
	}
	now := time.Now()
	b.settle(now)
	n := min(maxMessages, len(b.waiting))
	if n == 0 {
		next := recheck{b.wake, MaxWait}
		if len(b.hidden) > 0 {
			next.within = b.hidden[0].until.Sub(now)
		}
		return nil, next, nil
	}
	messages := make([]Message, n)
	for i, l := range b.waiting[:n] {
		l.deliveries++
		l.receipt, l.until = rand.Text(), now.Add(visibility)
		heap.Push(&b.hidden, l)
		messages[i] = &memoryMessage{box: b, letter: l, receipt: l.receipt, deliveries: l.deliveries}
	}
	clear(b.waiting[:n])
	b.waiting = b.waiting[n:]
	return messages, recheck{}, nil
}

// settle ends the deliveries whose visibility is over.
func (b *Memory) settle(now time.Time) {
	for len(b.hidden) > 0 && !now.Before(b.hidden[0].until) {
		b.giveBack(b.hidden[0])
	}
}

// giveBack ends a delivery that was not acknowledged.
func (b *Memory) giveBack(l *letter) {
	heap.Remove(&b.hidden, l.place)
	l.receipt = ""
	if l.deliveries >= MaxDeliveries {
		delete(b.letters, l.id)
		b.dead = append(b.dead, DeadLetter{ID: l.id, Body: l.body, Deliveries: l.deliveries})
		return
	}
	b.wait(l)
}

// wait puts a letter at the end of the queue and wakes the receivers.
func (b *Memory) wait(l *letter) {
	b.waiting = append(b.waiting, l)
	close(b.wake)
	b.wake = make(chan struct{})
}

// DeadLetters implements Mailbox.
func (b *Memory) DeadLetters(ctx context.Context, limit int) ([]DeadLetter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle(time.Now())
	return append([]DeadLetter(nil), b.dead[:min(max(0, limit), len(b.dead))]...), nil
}

// Close implements Mailbox.
func (b *Memory) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.wake)
		b.wake = make(chan struct{}) // wait closes it again when a letter comes back
	}
	return nil
}
