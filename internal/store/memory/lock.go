package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// The limits of waiting, as in package postgres.
const (
	lockTimeout = 2 * time.Second
	idleTimeout = time.Second
	gateTimeout = 250 * time.Millisecond
)

// lock names a row, or a key that a row may have.
type lock struct {
	table string
	key   key
}

// heldLock is a lock of a transaction. It may have been that of a commit on its way, of the same node.
type heldLock struct {
	lock
	from *tx
}

var gate = lock{table: "gate"}

// errDeadlock is the error of a transaction that would wait for one that waits for it.
var errDeadlock = fmt.Errorf("%w: deadlock", scheduler.ErrAgain)

// try takes a lock if no other transaction has it.
func (t *tx) try(l lock) bool {
	h := t.db.locks[l]
	switch {
	case h == t:
	case h == nil || h.flight != nil && h.store == t.store:
		t.db.locks[l] = t
		t.locks = append(t.locks, heldLock{l, h})
	default:
		return false
	}
	return true
}

// acquire takes a lock, and waits for it as long as a transaction may. Afterwards the transaction sees what was
// committed while it waited.
func (t *tx) acquire(l lock) error {
	start := t.db.Mono("")
	for !t.try(l) {
		h := t.db.locks[l]
		now := t.db.Mono("")
		switch {
		case h.flight != nil:
			_ = h.store.decideThrough(h.flight) // the sender has the error
			continue
		case now-h.activeAt > h.patience(): // its node has stopped
			h.kill()
			continue
		case h.waitsFor(t):
			if !h.waitsSole() {
				t.db.deadlocks++
			}
			return errDeadlock
		case now-start > lockTimeout:
			return fmt.Errorf("%w: another node has locked %s for too long", scheduler.ErrAgain, l.table)
		}
		t.waits = h
		t.db.await(t.store.node, l.table)
		t.waits = nil
		if err := t.alive(); err != nil {
			return err
		}
	}
	t.activeAt = t.db.Mono("")
	t.refresh()
	return nil
}

// patience is how long a transaction may do nothing while others wait for it.
func (t *tx) patience() time.Duration {
	switch {
	case t.waits != nil:
		return lockTimeout
	case t.gated:
		return gateTimeout
	}
	return idleTimeout
}

func (t *tx) waitsFor(o *tx) bool {
	for ; t != nil; t = t.waits {
		if t == o {
			return true
		}
	}
	return false
}

// waitsSole reports whether a transaction that was decided in the belief that no other node would come is among those
// for which t waits, or is t. It takes the gate behind other locks, and gives way in a circle.
func (t *tx) waitsSole() bool {
	for ; t != nil && !t.guard && !t.late; t = t.waits {
	}
	return t != nil
}

// release gives the locks back: a lock that was taken over from a commit on its way goes back to that commit.
func (t *tx) release(locks ...heldLock) {
	for _, l := range locks {
		switch {
		case t.db.locks[l.lock] != t:
		case l.from != nil && !l.from.over:
			t.db.locks[l.lock] = l.from
		default:
			delete(t.db.locks, l.lock)
		}
	}
	t.db.cond.Broadcast()
}

// Gate implements scheduler.Tx. A guarded transaction takes it last.
func (t *tx) Gate(context.Context) error {
	if t.guard && t.err == nil {
		t.gated = true
	}
	if t.gated || t.err != nil {
		return t.err
	}
	return t.do("gate", t.takeGate)
}

func (t *tx) takeGate() error {
	err := t.acquire(gate)
	t.gated = err == nil
	t.readClock()
	return err
}

// lockTries is how often Lock looks for a job that moves.
const lockTries = 5

// Lock implements scheduler.Tx. Jobs in the queue and ended ones are locked behind the gate, where nothing may wait; a
// transaction that has the gate already waits for none.
func (t *tx) Lock(_ context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Standing, error) {
	standings := make(map[lessor.JobID]*rules.Standing, len(ids))
	err := t.do("lock jobs", func() error {
		if err := t.hold(ids); err != nil {
			return err
		}
		t.refresh()
		t.readClock()
		t.state.standings(ids, standings)
		return nil
	})
	return standings, err
}

func (t *tx) hold(ids []lessor.JobID) error {
	var left []*job
	for _, id := range ids {
		if j, ok := t.state.jobs.get(key{id: id.UUID}); ok && !slices.Contains(left, j) {
			left = append(left, j)
		}
	}
	slices.SortFunc(left, func(a, b *job) int { // leases before waiting jobs
		return cmp.Or(cmp.Compare(b.Place, a.Place), cmp.Compare(a.Turn.Seq, b.Turn.Seq))
	})
	var moved []*job
	for _, j := range left {
		ok, err := t.holdWaiting(j)
		if err != nil {
			return err
		}
		if !ok {
			moved = append(moved, j)
		}
	}
	for try := 0; len(moved) > 0; try++ {
		if try == lockTries {
			return fmt.Errorf("%w: job %s moves on and on", scheduler.ErrAgain, moved[0].Spec.ID)
		}
		if !t.gated {
			if err := t.takeGate(); err != nil {
				return err
			}
		}
		if try > 0 { // another node has it for a moment
			t.db.await(t.store.node, "a moment")
			if err := t.alive(); err != nil {
				return err
			}
			t.refresh()
		}
		moved = slices.DeleteFunc(moved, func(j *job) bool {
			now, known := t.state.jobs.get(key{id: j.Spec.ID.UUID})
			return !known || t.try(now.lock())
		})
	}
	return nil
}

// holdWaiting locks a job if it is in a lease or delayed, and is still there after the waiting.
func (t *tx) holdWaiting(j *job) (bool, error) {
	if t.gated || j.Place != rules.Leased && j.Place != rules.Delayed {
		return false, nil
	}
	n := len(t.locks)
	if err := t.acquire(j.lock()); err != nil {
		return false, err
	}
	now, ok := t.state.jobs.get(key{id: j.Spec.ID.UUID})
	if ok && now.Place == j.Place && now.Turn.Fence == j.Turn.Fence {
		return true, nil
	}
	t.release(t.locks[n:]...)
	t.locks = t.locks[:n]
	return !ok, nil
}
