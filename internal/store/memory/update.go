package memory

import (
	"context"
	"errors"
	"fmt"

	"lessor/internal/scheduler"
)

// errOver is the error of a transaction that is used after its end.
var errOver = errors.New("the transaction is over")

// errBefore: the transaction was built on one that failed.
var errBefore = fmt.Errorf("%w: the transaction before failed", scheduler.ErrAgain)

// Update implements scheduler.Store.
func (s *Store) Update(ctx context.Context, fn func(scheduler.Tx) error) error {
	f, err := s.transact(ctx, scheduler.Shared, fn)
	if err != nil {
		return err
	}
	return s.wait(f)
}

// Send implements scheduler.Store. The fate of the commit is decided when it is needed: by wait, by the next
// transaction that is not sent behind it, or by a node that waits for its locks.
func (s *Store) Send(
	ctx context.Context, on scheduler.Footing, fn func(scheduler.Tx) error,
) (wait func() error, err error) {
	f, err := s.transact(ctx, on, fn)
	if err != nil {
		return nil, err
	}
	return func() error { return s.wait(f) }, nil
}

// transact runs fn and sends its commit.
func (s *Store) transact(
	ctx context.Context, on scheduler.Footing, fn func(scheduler.Tx) error,
) (*flight, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	s.reach(s.node, "begin")
	t, err := s.begin(on)
	if err != nil {
		return nil, err
	}
	defer func() {
		t.err = errOver
		if t.flight == nil { // also when fn panics
			s.mu.Lock()
			defer s.mu.Unlock()
			t.end()
		}
	}()
	refused := fn(t)
	switch {
	case t.err != nil: // whatever fn returned, the transaction is spoilt
		return nil, t.suspect(errors.Join(t.err, unless(refused, t.err)))
	case errors.Is(refused, scheduler.ErrMoved):
		return nil, t.suspect(refused)
	case refused != nil:
		return nil, refused
	}
	return t.commit()
}

func unless(err, known error) error {
	if errors.Is(err, known) {
		return nil
	}
	return err
}

// enter waits for the turn. A context that is done gets none, even if the turn is free.
func (s *Store) enter(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.closed:
			return errClosed
		case ctx.Err() != nil:
			return fmt.Errorf("wait for the writer: %w", context.Cause(ctx))
		case !s.busy:
			s.busy = true
			return nil
		}
		s.await(s.node, "the writer")
	}
}

func (s *Store) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.writing = false, nil
	s.cond.Broadcast()
}

// begin begins a transaction, if it may be behind commits on their way.
func (s *Store) begin(on scheduler.Footing) (*tx, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.flights) > 0 && s.flights[0].decided {
		if s.endOldest() != nil && on == scheduler.Behind {
			return nil, errBefore
		}
	}
	guard := on != scheduler.Shared && s.stream.next != nil && s.db.Clock().Sub(s.served).Abs() < guardFor
	if guard && len(s.flights) == maxFlights && s.endOldest() != nil || !guard && s.endAll() != nil {
		return nil, errBefore
	}
	switch {
	case s.closed:
		return nil, errClosed
	case s.origin.lost:
		_ = s.endAll() // the sender has the error
		s.renew()
		return nil, errWentBack
	case s.differs():
		return nil, errWentBack
	}
	if s.stream.id == 0 {
		s.newStream()
	}
	t := &tx{view: view{store: s, db: s.db}, guard: guard, seen: -1, activeAt: s.db.Mono("")}
	t.view.tx = t
	s.writing = t
	t.refresh()
	t.readClock()
	return t, nil
}

// suspect turns a fault of a guarded transaction into errOthers: another node may have caused it before the guard
// could tell. The repetition finds out.
func (t *tx) suspect(err error) error {
	if !t.guard || errors.Is(err, errOthers) || errors.Is(err, scheduler.ErrUnreachable) || errors.Is(err, errTwice) {
		return err
	}
	return fmt.Errorf("%w: %w", errOthers, opaque{err})
}

// opaque keeps the text of an error and hides its kind.
type opaque struct{ error }

func (opaque) Unwrap() error { return nil }
