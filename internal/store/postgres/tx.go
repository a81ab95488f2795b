package postgres

import (
	"context"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// tx is one write transaction. The first fault of any of its methods spoils it.
//
// What only writes is put off until the next reading, or until the commit, and travels with it: a fault shows there. All
// checks are the server's, so that a transaction that is not what it should be cannot commit.
type tx struct {
	view
	base  rules.Serving // the row that SaveServing was decided on
	gated bool
	late  []scheduler.Move // whose rows are taken from the queue at the end
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

	lanes map[rules.Lane]rules.LaneID // that Lanes was told of

	// What becomes known with the commit.
	inserted []*rules.Spec
	granted  []lessor.JobID
	known    map[lessor.LeaseID]*rules.Held
	ended    map[lessor.LeaseID]struct{}
}

var _ scheduler.Tx = (*tx)(nil)

// write puts a statement off.
func (t *tx) write(verb string, s wire.Step, params ...[]byte) error {
	t.wrote = true
	t.add(verb, s, params...)
	return t.err
}

// gateKey is the advisory lock that is the gate: "lessor".
const gateKey = 0x6c6573736f72

// gate waits for the gate. Who has it may not idle for long; a list is evaluated from left to right.
var gate = wire.SQL("select set_config('lock_timeout', $2::text, true), pg_advisory_xact_lock($1::bigint)," +
	" set_config('idle_in_transaction_session_timeout', $3::text, true)")

// Gate implements scheduler.Tx. A guarded transaction comes to it last, so that the one behind it has done most of its work when it must wait.
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

// finish adds what a guarded transaction does last: it waits for the one before, and for the gate, and takes rows from the queue.
func (t *tx) finish() {
	t.follows()
	if t.guard && t.gated {
		t.addGate(t.store.cfg.GateTimeout) // no longer: who has it may wait for our rows
		t.takeQueued(t.late)
	}
}
