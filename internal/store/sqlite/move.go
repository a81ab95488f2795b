package sqlite

import (
	"context"
	"fmt"

	"zombiezen.com/go/sqlite"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// Move implements scheduler.Tx: all rows are taken from where they are before the first is put where it goes.
func (t *tx) Move(_ context.Context, moves []scheduler.Move) error {
	return t.do("move jobs", func() error {
		for i := range moves {
			if err := t.takeRow(&moves[i]); err != nil {
				return fmt.Errorf("take job %s from place %d: %w", moves[i].Turn.Job, moves[i].From, err)
			}
		}
		if err := t.sort(moves); err != nil {
			return err
		}
		return t.putRows()
	})
}

// takeRow deletes the row that is moved.
func (t *tx) takeRow(m *scheduler.Move) error {
	var a args
	switch m.From {
	case rules.Nowhere:
		return nil
	case rules.InQueue:
		a.stmt = t.w.takeQueued
	case rules.Delayed:
		a.stmt = t.w.takeDelayed
	case rules.Ended:
		a.stmt = t.w.takeDone
	case rules.Leased:
		h := t.store.leases.remove(m.Held.ID)
		if h == nil {
			return scheduler.ErrMoved
		}
		a.stmt = t.w.takeLeased
		a.int(h.Turn.Seq)
		a.id(h.ID.UUID)
		return t.one(a.stmt)
	default:
		return fmt.Errorf("%w: no such place", scheduler.ErrBadCall)
	}
	a.int(m.Turn.Seq)
	a.id(m.Turn.Job.UUID)
	return t.one(a.stmt)
}

// one runs a statement that must change one row.
func (t *tx) one(stmt *sqlite.Stmt) error {
	if err := exec(stmt); err != nil {
		return err
	}
	if t.conn.Changes() != 1 {
		return scheduler.ErrMoved
	}
	return nil
}

// sort lists the moves by the table they go to, so that each gets its rows in few statements.
func (t *tx) sort(moves []scheduler.Move) error {
	t.toQueue, t.toDelayed, t.toLease, t.toDone, t.toAttempt =
		t.toQueue[:0], t.toDelayed[:0], t.toLease[:0], t.toDone[:0], t.toAttempt[:0]
	for i := range moves {
		m := &moves[i]
		switch m.To {
		case rules.InQueue:
			t.toQueue = append(t.toQueue, m)
		case rules.Delayed:
			t.toDelayed = append(t.toDelayed, m)
		case rules.Leased:
			t.toLease = append(t.toLease, m)
		case rules.Ended:
			t.toDone = append(t.toDone, m)
		default:
			return fmt.Errorf("%w: a job cannot move to place %d", scheduler.ErrBadCall, m.To)
		}
		if m.Attempt != nil {
			t.toAttempt = append(t.toAttempt, m)
		}
	}
	return nil
}

func (t *tx) putRows() error {
	if err := t.w.queue.insert(len(t.toQueue), func(i int, a *args) { bindTurn(a, &t.toQueue[i].Turn) }); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	if err := t.w.delayed.insert(len(t.toDelayed), func(i int, a *args) {
		bindWaiting(a, &t.toDelayed[i].Turn, t.toDelayed[i].Wait)
	}); err != nil {
		return fmt.Errorf("delayed: %w", err)
	}
	if err := t.w.lease.insert(len(t.toLease), func(i int, a *args) {
		h := t.toLease[i].Held
		bindLease(a, h)
		t.store.leases.add(h)
		t.granted = append(t.granted, h.Turn.Job)
	}); err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	if err := t.w.attempt.insert(len(t.toAttempt), func(i int, a *args) { bindAttempt(a, t.toAttempt[i].Attempt) }); err != nil {
		return fmt.Errorf("attempt: %w", err)
	}
	if err := t.w.done.insert(len(t.toDone), func(i int, a *args) { bindDone(a, t.toDone[i].Done) }); err != nil {
		return fmt.Errorf("done: %w", err)
	}
	return nil
}
