package sqlite

import (
	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// tx is one write transaction. The first fault of any of its methods spoils it: what follows is answered with that fault,
// since SQLite may have rolled back and would run further statements each for itself.
type tx struct {
	view
	store *Store
	w     *writer
	err   error

	seqLimit int64         // the mark up to which this transaction reserved places in line
	read     []*rules.Spec // that SpecsAt returned and no grant has used yet
	granted  []*kept       // whose specs are not needed again soon

	// What a Move takes apart, by the table it goes to.
	toQueue, toDelayed, toLease, toDone, toAttempt []*scheduler.Move
	leased, beaten                                 []*kept
	started                                        []lessor.Instant // first grants of what goes to done
}

var (
	_ scheduler.Tx       = (*tx)(nil)
	_ scheduler.KernelTx = (*tx)(nil)
)

// do runs a write, unless the transaction is spoilt.
func (t *tx) do(verb string, write func() error) error {
	if t.err != nil {
		return t.err
	}
	t.err = fault(verb, write())
	return t.err
}
