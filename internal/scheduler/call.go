package scheduler

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"lessor"
	"lessor/internal/batch"
)

// op is a call that a commit answers.
type op interface {
	base() *call
	size() int // about how many bytes it adds to the transaction
}

// call is the part that all ops share: one caller that waits for one answer.
type call struct {
	done  chan struct{} // receives once, if it is answered
	err   error
	state atomic.Int32
	part  bool // of a turn
}

// The life of a call: it waits, and is then either answered or abandoned by its caller, never both.
const (
	callWaiting int32 = iota
	callAnswered
	callAbandoned
)

func (s *Scheduler) newCall() call {
	if done, ok := s.channels.Get().(chan struct{}); ok {
		return call{done: done}
	}
	return call{done: make(chan struct{}, 1)}
}

func (c *call) base() *call { return c }

// answer ends the caller's waiting; false means that it is no longer there.
func (c *call) answer(err error) bool {
	if !c.state.CompareAndSwap(callWaiting, callAnswered) {
		return false
	}
	c.err = err
	c.done <- struct{}{}
	return true
}

func (c *call) abandoned() bool { return c.state.Load() == callAbandoned }

// do puts o into the next batch and waits for its answer. If ctx ends first, do returns, and the operation may still
// happen. Each tenant has a share of the queue of calls, and so have all callers that are bound to no tenant together.
func (s *Scheduler) do(ctx context.Context, from *Caller, o op) error {
	if err := s.put(from, o); err != nil {
		return err
	}
	return s.wait(ctx, o)
}

func (s *Scheduler) put(from *Caller, o op) error {
	switch err := s.calls.Put(from.space().UUID, o); {
	case errors.Is(err, batch.ErrFull):
		return &lessor.Error{
			Code: lessor.CodeRateLimited, Detail: "too many calls are waiting for the store", RetryAfter: time.Second,
		}
	case err != nil:
		return errStopping
	}
	return nil
}

func (s *Scheduler) wait(ctx context.Context, o op) error {
	c := o.base()
	defer s.channels.Put(c.done) // nothing comes any more
	if !s.machine.Await(ctx, c.done) {
		if c.state.CompareAndSwap(callWaiting, callAbandoned) {
			return ctx.Err()
		}
		<-c.done
	}
	return c.err
}

// readCall reads the loop's state between two commits.
type readCall struct {
	call
	fn func(*loop)
}

func (*readCall) size() int { return 0 }

// read runs fn in the loop while no commit changes its state. fn must not keep the pointer.
func (s *Scheduler) read(ctx context.Context, from Caller, fn func(l *loop)) error {
	return s.do(ctx, &from, &readCall{call: s.newCall(), fn: fn})
}

// changeCall is a rare call that runs in a transaction of its own.
type changeCall struct {
	call
	fn func(ctx context.Context, p *pass) error
}

func (*changeCall) size() int { return 1 << 10 }

// change runs fn in a transaction of its own. A refusal that fn returns is its caller's answer: fn refuses
// before it changes anything.
func (s *Scheduler) change(ctx context.Context, from Caller, fn func(ctx context.Context, p *pass) error) error {
	return s.do(ctx, &from, &changeCall{call: s.newCall(), fn: fn})
}
