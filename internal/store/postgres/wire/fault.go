package wire

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// divisionByZero is the code with which a guard fails; see Step.
const divisionByZero = "22012"

// Answered reports whether the server itself refused a statement, so that nothing was committed.
func Answered(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.SeverityUnlocalized == "ERROR"
}

// Usable reports whether a connection is of use after err: the server refused a statement and waits for the next.
func Usable(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pg.SeverityUnlocalized != "ERROR" && pg.Severity != "ERROR" {
		return false
	}
	switch pg.Code {
	case "0A000", // a plan is stale
		"25006",          // the server is no longer the primary
		"57014",          // the server is stuck
		"26000", "42P05": // a pooler mixed up prepared statements
		return false
	}
	switch {
	case strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(pg.Code, "58"), strings.HasPrefix(pg.Code, "XX"):
		return false
	}
	return true
}
