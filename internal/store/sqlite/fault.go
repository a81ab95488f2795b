package sqlite

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"lessor/internal/scheduler"
)

// fault adds the operation that failed, and the scheduler's error that says how to react.
func fault(verb string, err error) error {
	if err == nil {
		return nil
	}
	if kind := kindOf(err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%s: %w: %w", verb, kind, err)
	}
	return fmt.Errorf("%s: %w", verb, err)
}

// kindOf returns the scheduler's error for err, nil if there is none.
func kindOf(err error) error {
	for _, kind := range []error{
		scheduler.ErrFull, scheduler.ErrUnreachable, scheduler.ErrBroken, scheduler.ErrBadCall, scheduler.ErrMoved,
	} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull:
		return scheduler.ErrFull
	case sqlite.ResultIOErr, sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return scheduler.ErrBroken
	case sqlite.ResultConstraint, sqlite.ResultTooBig, sqlite.ResultMismatch:
		return scheduler.ErrBadCall
	case sqlite.ResultReadOnly, sqlite.ResultCantOpen, sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultNoMem,
		sqlite.ResultPerm:
		return scheduler.ErrUnreachable
	}
	return nil
}

// readFault is fault for a read that ends with its context: the context's error says more than "interrupted".
func readFault(ctx context.Context, verb string, err error) error {
	if err != nil && ctx.Err() != nil && sqlite.ErrCode(err).ToPrimary() == sqlite.ResultInterrupt {
		return fmt.Errorf("%s: %w", verb, context.Cause(ctx))
	}
	return fault(verb, err)
}
