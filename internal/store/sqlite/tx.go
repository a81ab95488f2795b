package sqlite

import (
	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

// tx is one write transaction. The first fault of any of its methods spoils it: all later calls return that fault,
// since SQLite may have rolled back and would then commit each further statement by itself.
type tx struct {
	view
	store *Store
	w     *writer
	err   error

	seqLimit int64         // the limit up to which this transaction reserved places in line
	read     []*rules.Spec // returned by SpecsAt, and not used by a grant yet
	granted  []*liveLease  // their specs are not needed again soon

	// The moves of one call of Move, by the table that they go to.
	toQueue, toDelayed, toLease, toDone, toAttempt []*scheduler.Move
	fromLease, fromBeat                            []int64 // the numbers of leases whose rows are to be taken
	leased, changed                                []*liveLease
	started                                        []lessor.Instant // the first grants of the jobs that go to done
}

var _ scheduler.Tx = (*tx)(nil)

// do runs a write, unless the transaction is spoilt.
func (t *tx) do(verb string, write func() error) error {
	if t.err != nil {
		return t.err
	}
	t.err = fault(verb, write())
	return t.err
}

// run executes a statement n times; bind binds its parameters for the i-th.
func (t *tx) run(verb, text string, n int, bind func(i int, a *args)) error {
	return t.do(verb, func() error {
		for i := range n {
			if err := query(t.conn, text, func(a *args) { bind(i, a) }, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// runOnce executes a statement.
func (t *tx) runOnce(verb, text string, bind func(a *args)) error {
	return t.do(verb, func() error { return query(t.conn, text, bind, nil) })
}

// insert inserts rows.
func insert[T any](t *tx, verb string, into *bulk, rows []T, declare func(*row.Codec, *T)) error {
	return t.do(verb, func() error {
		return into.insert(len(rows), func(i int, c *row.Codec) { declare(c, &rows[i]) })
	})
}
