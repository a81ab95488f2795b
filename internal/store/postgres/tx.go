package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// tx is one write transaction. The first fault of any of its methods spoils it.
//
// What only writes is put off until the next reading, or until the commit, and travels with it: a fault shows there. All
// checks are the server's, so that a transaction that is not what it should be cannot commit.
type tx struct {
	view
	base  rules.Serving // the row that SaveServing was decided on
	gated bool
	wrote bool
	// order is the number of its own order lock, 0 = none; ordered says that it waits for that of the commit before.
	order   int32
	ordered bool
	// leased says that changes of lease rows were put off.
	leased bool
	// guard says that the last statement makes sure that no other node came between.
	guard bool
	epoch int64  // when it began
	news  []byte // what Publish was told
	// missing are definitions that LockDefinitions did not find.
	missing map[string]bool
	owners  map[rules.LaneID]owner // of the jobs that Move was told of

	// What becomes known with the commit.
	lanes    map[rules.Lane]rules.LaneID
	inserted []*rules.Spec
	granted  []lessor.JobID
	known    map[lessor.LeaseID]*rules.Held
	ended    map[lessor.LeaseID]struct{}
}

var _ scheduler.Tx = (*tx)(nil)

// write puts a statement off.
func (t *tx) write(verb string, s step, params ...[]byte) error {
	t.wrote = true
	t.add(verb, s, params...)
	return t.err
}

// gateKey is the advisory lock that is the gate: "lessor".
const gateKey = 0x6c6573736f72

// gate waits for the gate. Who has it may not idle for long; a list is evaluated from left to right.
var gate = sql("select pg_advisory_xact_lock($1::bigint), set_config('idle_in_transaction_session_timeout', $2::text, true)")

// Gate implements scheduler.Tx.
func (t *tx) Gate(context.Context) error {
	if t.gated || t.err != nil {
		return t.err
	}
	if t.guard {
		t.now = max(t.now, t.store.reckoned.now())
	}
	lock := func() { t.add("gate", step{stmt: gate}, int8Of(gateKey), millisOf(t.store.cfg.GateTimeout)) }
	var err error
	switch {
	case t.guard:
		t.follows()
		lock()
		err = t.err
	default:
		err = t.locked("gate", lock)
	}
	t.gated = err == nil
	return err
}
