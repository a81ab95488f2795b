package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// errPooler is the error of a statement that another client of a pooler prepared, or that the pooler did not prepare on
// the session that it chose. pgbouncer keeps prepared statements apart since 1.21, and only with the setting.
var errPooler = fmt.Errorf("%w: the pooler mixes up prepared statements: use pgbouncer 1.21 or newer with"+
	" max_prepared_statements of 300 or more, or connect to PostgreSQL directly", scheduler.ErrUnreachable)

// answered reports whether the server itself refused a statement, so that nothing was committed.
func answered(err error) bool {
	return wire.Answered(err) || errors.Is(err, scheduler.ErrMoved) || errors.Is(err, scheduler.ErrAgain) // by a guard
}

// fault adds the operation that failed, and wraps the scheduler's error that says how to react.
func fault(verb string, err error) error {
	if err == nil {
		return nil
	}
	if kind := kindOf(err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%s: %w: %w", verb, kind, err)
	}
	return fmt.Errorf("%s: %w", verb, err)
}

// kindOf returns which of the scheduler's errors err is, nil if none.
func kindOf(err error) error {
	for _, kind := range []error{
		scheduler.ErrFull, scheduler.ErrDisconnected, scheduler.ErrUnreachable, scheduler.ErrUnknownOutcome,
		scheduler.ErrBadCall, scheduler.ErrAgain, scheduler.ErrMoved,
	} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	if errors.Is(err, context.Canceled) {
		return nil // the caller has gone
	}
	if broke(err) {
		return scheduler.ErrDisconnected
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return scheduler.ErrUnreachable // there was no connection, or no answer in time
	}
	switch pg.Code {
	case "40001", "40P01", "55P03": // serialization, deadlock, lock time-out
		return scheduler.ErrAgain
	case "0A000": // a cached plan is stale: the schema was changed under the connection
		return scheduler.ErrAgain
	case "26000", "42P05": // a prepared statement is not there, or there already
		return errPooler
	case "53100":
		return scheduler.ErrFull
	case "57014": // statement time-out
		return scheduler.ErrUnreachable
	}
	if pg.ConstraintName == openAlerts {
		return scheduler.ErrAgain
	}
	switch pg.Code[:2] {
	case "22", "23":
		return scheduler.ErrBadCall
	case "42": // a statement of ours is wrong, or its table is not there
		return nil
	}
	return scheduler.ErrUnreachable
}

// broke reports whether a connection was there and broke.
func broke(err error) bool {
	if _, never := errors.AsType[*pgconn.ConnectError](err); never {
		return false
	}
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return false
	}
	pg, told := errors.AsType[*pgconn.PgError](err)
	// idle in its transaction for too long; ended by an operator; ended because another session crashed
	return !told || slices.Contains([]string{"25P03", "57P01", "57P02"}, pg.Code)
}

// unreachable says in one line why there is no connection, with advice. The driver has a line for each attempt.
type unreachable struct{ error }

func (u unreachable) Error() string {
	var lines []string
	for line := range strings.Lines(u.error.Error()) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(slices.Compact(lines), " ") + "; does PostgreSQL run there, and may this user connect?"
}

func (u unreachable) Unwrap() error { return u.error }
