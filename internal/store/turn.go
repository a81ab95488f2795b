// Package store has what the stores in databases have in common besides their rows: the turn of the goroutine that may
// write, and the specs of recent jobs.
package store

import (
	"context"
	"fmt"

	"lessor/internal/scheduler"
)

// ErrClosed is the error of a closed store.
var ErrClosed = fmt.Errorf("%w: it was closed", scheduler.ErrUnreachable)

// Turn admits one goroutine at a time, until the store is closed. It is a channel, so that waiting ends with a context.
type Turn struct {
	verb   string
	free   chan struct{} // holds a token while no goroutine has the turn
	closed <-chan struct{}
}

// NewTurn returns a turn that the caller has. The verb says what for others wait.
func NewTurn(verb string, closed <-chan struct{}) Turn {
	return Turn{verb, make(chan struct{}, 1), closed}
}

// Enter waits for the turn. It returns an error if ctx is done or the store is closed, even if the turn is free.
func (t Turn) Enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", t.verb, context.Cause(ctx))
	}
	select {
	case <-t.free:
	case <-t.closed:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", t.verb, context.Cause(ctx))
	}
	select {
	case <-t.closed: // both were ready
		t.Leave()
		return ErrClosed
	default:
		return nil
	}
}

// Leave gives the turn to the next one.
func (t Turn) Leave() { t.free <- struct{}{} }

// End waits for the turn of a closed store, which nobody gets any more.
func (t Turn) End() { <-t.free }
