package memory

import (
	"fmt"
	"time"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// tx is one write transaction. The first fault of any of its methods spoils it.
type tx struct {
	view
	writes    []func(*tables)
	seen      int64  // the version of the database to which the writes were applied
	decided   int    // how many commits before it were decided then
	published []byte // to publish
	base      rules.Serving
	gated     bool
	guard     bool // it fails if another node has written
	late      bool // it is guarded and takes the gate, after rows
	locks     []heldLock
	waits     *tx // for which it waits now
	activeAt  time.Duration
	killed    bool
	flight    *flight
	over      bool
	missing   map[string]bool // definitions that LockDefinitions did not find
}

var _ scheduler.Tx = (*tx)(nil)

// errKilled is the error of a transaction that the database ended.
var errKilled = fmt.Errorf("%w: the database ended the transaction", scheduler.ErrDisconnected)

// kill rolls the transaction back, and makes all of its methods fail.
func (t *tx) kill() {
	t.killed = true
	t.end()
}

// end gives back what the transaction holds.
func (t *tx) end() {
	if !t.over {
		t.over = true
		t.release(t.locks...)
		t.locks = nil
	}
}

func (t *tx) alive() error {
	if t.killed {
		return errKilled
	}
	return nil
}

// do runs one statement that locks or writes.
func (t *tx) do(verb string, fn func() error) error {
	if t.err != nil {
		return t.err
	}
	t.db.reach(t.store.node, verb)
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	err := t.alive()
	if err == nil {
		t.activeAt = t.db.Mono("")
		t.refresh()
		err = fn()
	}
	if err != nil {
		t.err = fmt.Errorf("%s: %w", verb, err)
	}
	return t.err
}

// write changes rows that the transaction has locked. It is applied again when others have committed meanwhile, and
// must do the same then.
func (t *tx) write(fn func(*tables)) {
	fn(&t.state)
	t.writes = append(t.writes, fn)
}

// save is do for a write that locks the rows with these keys.
func save[T any](t *tx, verb, table string, rows []T, keyOf func(*T) key, write func(*tables, *T)) error {
	return t.do(verb, func() error {
		for i := range rows {
			r := &rows[i]
			if err := t.acquire(lock{table, keyOf(r)}); err != nil {
				return err
			}
			t.write(func(s *tables) { write(s, r) })
		}
		return nil
	})
}

// refresh lets the transaction see what was committed before now.
func (t *tx) refresh() {
	if t.seen == t.db.version && t.decided == t.store.decided {
		return
	}
	t.state = t.db.state
	t.streams = t.db.streams
	for _, f := range t.store.flights {
		if f.tx != t && !f.tx.over {
			for _, w := range f.tx.writes {
				w(&t.state)
			}
		}
	}
	for _, w := range t.writes {
		w(&t.state)
	}
	t.seen, t.decided = t.db.version, t.store.decided
}

// readClock reads the clock and the serving row.
func (t *tx) readClock() {
	t.now, t.row = t.db.Clock(), t.db.serving
	t.serving = rules.Serve(t.row, rules.ClockReading{}, rules.ClockReading{Wall: t.now})
	if t.saved != nil {
		t.serving = *t.saved
		t.serving.LastBeat = t.now
	}
}
