package scheduler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"lessor/internal/rules"
)

// Store keeps jobs, leases and their record. It loads and saves; it decides nothing. storetest says what it must do.
//
// An error of its methods is a fault; it wraps one of the errors below where the scheduler can do something about it.
// Each part says which ones.
type Store interface {
	Transactions
	Nodes
	Upkeep
}

// Footing is what a transaction that is sent stands on.
type Footing int

// The footings.
const (
	Shared Footing = iota // other nodes work on the store, too
	Sole                  // no other node does, and the caller knows how its commits before have ended
	Behind                // no other node does, and fn builds on a commit whose end the caller does not know
)

// Transactions reads and writes.
//
// An error of fn comes back as it is. A commit fails with any of the errors below. ErrAgain and ErrWentBack come from a
// store that is Shared only.
type Transactions interface {
	// Update runs fn in one write transaction and returns after its commit is durable. Writers run one at a time. If fn
	// returns an error, or the commit fails, nothing was changed, unless the error is ErrUnknownOutcome. The caller
	// knows how the commits that it sent before have ended.
	Update(ctx context.Context, fn func(Tx) error) error
	// Send is Update that may return once the commit was sent; wait returns what Update would have. The clock of the
	// transaction may be reckoned. A sole node may send the next transaction before the commit has ended; what the next
	// one reads waits by itself. It fails with ErrAgain if the one before fails, or if the node was not the only one.
	Send(ctx context.Context, on Footing, fn func(Tx) error) (wait func() error, err error)
	// View runs fn on one consistent snapshot of what was committed. Views run beside each other and beside Update.
	View(ctx context.Context, fn func(View) error) error
}

// Nodes is what nodes that share a store know of each other.
//
// Its methods fail with ErrUnreachable, ErrFull or ErrBroken, Serve with ErrWentBack too.
type Nodes interface {
	// Shared reports whether other nodes may write the store too. If so, every commit that changes the fold publishes
	// how, and a node reads what the others published before it decides about grants.
	Shared() bool
	// Serve notes that a heartbeat could be accepted now (rules.Serve): it fails or waits where the commit of a
	// heartbeat would. A node that shares its store and begins to serve shows no service yet (rules.BeginToServe). With
	// anew, service begins now, whatever was noted before. Update judges by rules.Serve as its first act.
	Serve(ctx context.Context, anew bool) (rules.Serving, error)
	// Rate notes this node's busy rating and returns the highest of all nodes that was noted within life.
	Rate(ctx context.Context, busy int, life time.Duration) (int, error)
	// ExchangeWorkers notes what this node knows of its workers, and returns what other nodes noted within life.
	ExchangeWorkers(ctx context.Context, known []byte, life time.Duration) ([][]byte, error)
	// WentBack returns, once, why the store is known to have gone back to an older state; "" if it is not.
	WentBack() string
}

// Upkeep is for operators. Backup fails with a *lessor.Error if the database has a better way of its own.
type Upkeep interface {
	// Backup writes a consistent copy of the store, as of one commit, while writers go on.
	Backup(ctx context.Context, w io.Writer) error
	// Check reports on the store's own health: settings, integrity, version.
	Check(ctx context.Context) []Finding
	// Seal hides the store's numbers in what callers see. Its key was made with the store and is the same on every
	// node.
	Seal() *rules.Seal
	Close() error
}

// Errors that a store wraps, so that the scheduler can decide what to do about them. After each of them but
// ErrUnknownOutcome nothing was changed.
var (
	// ErrFull: there is no space. The store may go on by itself.
	ErrFull = errors.New("store is full")
	// ErrUnreachable: the store did not answer.
	ErrUnreachable = errors.New("store is out of reach")
	// ErrDisconnected is an ErrUnreachable: the connection broke in a transaction, perhaps because the node stalled and
	// the store gave up on it. The same batch may be repeated at once, on another connection.
	ErrDisconnected = fmt.Errorf("%w: the connection broke", ErrUnreachable)
	// ErrUnknownOutcome: the answer to a commit was lost, or a standby that the commit waits for did not confirm it.
	ErrUnknownOutcome = errors.New("outcome of the commit is unknown")
	// ErrBroken: an I/O error after which nothing that was written can be trusted. The process must stop.
	ErrBroken = errors.New("store is broken")
	// ErrBadCall: the store refused a value. One call of the batch contains it; the others may be tried without that
	// call.
	ErrBadCall = errors.New("store refused a value")
	// ErrAgain: the transaction lost against that of another node. The same batch may be repeated at once.
	ErrAgain = errors.New("transaction must be repeated")
	// ErrWentBack: the store went back to an older state, or is another one: a standby was promoted, a copy restored.
	// Everything read before is void; the same batch may be repeated on what is read anew.
	ErrWentBack = errors.New("store went back")
	// ErrMoved: a row was not where a Move said it was. The fold no longer matches the tables and must be rebuilt.
	ErrMoved = errors.New("row is not where it was")
)

// Finding is one line of a store's health check.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}
