package postgres

import (
	"context"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// tx is one write transaction. It cannot commit after the first fault of any of its methods.
//
// A write is put off until the next read or the commit, and travels with it; a fault shows there. The server makes all
// checks, so that a transaction with a false assumption cannot commit.
type tx struct {
	view
	base  rules.Serving // the row that SaveServing was decided on
	gated bool
	late  []scheduler.Move // their rows are taken from the queue at the end
	wrote bool
	// order is the number of its own order lock, 0 = none; ordered says that it waits for the lock of the commit
	// before.
	order   int32
	ordered bool
	// leased says that changes of lease rows are put off.
	leased bool
	// guard says that the last statement checks that no other node has written.
	guard     bool
	epoch     int64  // when it began
	published []byte // to publish
	// missing are the definitions that LockDefinitions did not find.
	missing map[string]bool
	owners  map[rules.LaneID]owner // of the jobs that were moved

	lanes map[rules.Lane]rules.LaneID // that were asked for

	// These become known with the commit.
	inserted []*rules.Spec
	granted  []lessor.JobID
	known    map[lessor.LeaseID]*rules.Held
	ended    map[lessor.LeaseID]struct{}
	requests map[scheduler.RequestRef]struct{} // that were granted something
}

var _ scheduler.Tx = (*tx)(nil)

// write defers a statement.
func (t *tx) write(verb string, s wire.Step, params ...[]byte) error {
	t.wrote = true
	t.add(verb, s, params...)
	return t.err
}

// gateKey is the advisory lock that is the gate: "lessor".
const gateKey = 0x6c6573736f72

// gate waits for the gate, then shortens the idle time-out. A select list is evaluated from left to right.
var gate = wire.SQL("select set_config('lock_timeout', $2::text, true), pg_advisory_xact_lock($1::bigint)," +
	" set_config('idle_in_transaction_session_timeout', $3::text, true)")

// Gate implements scheduler.Tx. A guarded transaction takes the gate lock last, so that the transaction behind it has
// done most of its work when it must wait.
func (t *tx) Gate(context.Context) error {
	if t.gated || t.err != nil {
		return t.err
	}
	if t.guard {
		t.now = max(t.now, t.store.reckoned.now())
		t.gated = true
		return nil
	}
	err := t.locked("gate", func() { t.addGate(t.store.cfg.LockTimeout) })
	t.gated = err == nil
	return err
}

func (t *tx) addGate(wait time.Duration) {
	t.add("gate", wire.Step{Stmt: gate}, wire.Int8(gateKey), wire.Setting(wait), wire.Setting(t.store.cfg.GateTimeout))
}

// finish adds what a guarded transaction does last: it waits for the commit before it and for the gate, then takes rows
// from the queue.
func (t *tx) finish() {
	t.follows()
	if t.guard && t.gated {
		t.addGate(t.store.cfg.GateTimeout) // no longer: the node that holds it may wait for our rows
		t.takeQueued(t.late)
	}
}
