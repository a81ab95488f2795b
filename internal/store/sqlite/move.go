package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"zombiezen.com/go/sqlite"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

// Move implements scheduler.Tx. It takes all rows from their places before it puts the first into its new place.
func (t *tx) Move(_ context.Context, moves []scheduler.Move) error {
	return t.do("move jobs", func() error {
		t.fromLease, t.fromBeat = t.fromLease[:0], t.fromBeat[:0]
		for i := range moves {
			if err := t.takeRow(&moves[i]); err != nil {
				return fmt.Errorf("take job %s from place %d: %w", moves[i].Turn.Job, moves[i].From, err)
			}
		}
		if err := t.takeLeases(); err != nil {
			return fmt.Errorf("take leases: %w", err)
		}
		if err := t.sort(moves); err != nil {
			return err
		}
		if err := t.putRows(); err != nil {
			return err
		}
		return t.markRuns(moves)
	})
}

// takeRow takes the row of a move from its place.
func (t *tx) takeRow(m *scheduler.Move) error {
	var a args
	switch m.From {
	case rules.Nowhere:
		return nil
	case rules.InQueue:
		return t.takeQueued(m)
	case rules.Leased:
		return t.takeLeased(m)
	case rules.Delayed:
		a.stmt = t.w.takeDelayed
	case rules.Ended:
		a.stmt = t.w.takeDone
	default:
		return fmt.Errorf("%w: no such place", scheduler.ErrBadCall)
	}
	a.Int(m.Turn.Seq)
	a.ID(m.Turn.Job.UUID)
	return t.one(a.stmt)
}

// takeQueued takes a row from the queue. The row of a job that is granted stays: see queueRows.
func (t *tx) takeQueued(m *scheduler.Move) error {
	seq := m.Turn.Seq
	if !t.store.queueRows.queued.has(seq) {
		return scheduler.ErrMoved
	}
	if m.To == rules.Leased {
		if err := t.isQueued(&m.Turn); err != nil {
			return err
		}
		t.store.queueRows.leave(seq)
		return nil
	}
	a := args{stmt: t.w.takeQueued}
	a.Int(seq)
	a.ID(m.Turn.Job.UUID)
	if err := t.one(a.stmt); err != nil {
		return err
	}
	t.store.queueRows.remove(seq)
	return nil
}

// isQueued makes sure that a place in the queue is the job's. A job has its seq for life, so a spec that was read
// proves it. The specs of a grant were read, in the same order.
func (t *tx) isQueued(turn *rules.Turn) error {
	if len(t.read) > 0 && t.read[0] != nil && t.read[0].ID == turn.Job && t.read[0].Seq == turn.Seq {
		t.read = t.read[1:]
		return nil
	}
	a := args{stmt: t.w.isQueued}
	a.Int(turn.Seq)
	a.ID(turn.Job.UUID)
	found, err := a.stmt.Step()
	if err = errors.Join(err, a.stmt.Reset()); err != nil {
		return err
	}
	if !found {
		return scheduler.ErrMoved
	}
	return nil
}

// takeLeased notes that the rows of a lease are to be taken.
func (t *tx) takeLeased(m *scheduler.Move) error {
	h := t.store.leases.remove(m.Held.ID)
	if h == nil {
		return scheduler.ErrMoved
	}
	t.fromLease = append(t.fromLease, h.n)
	if h.hasBeat {
		t.fromBeat = append(t.fromBeat, h.n)
	}
	return nil
}

// takeLeases takes the rows of all leases that end in this move. Leases that were granted together have consecutive
// numbers and often end together: one statement takes the rows of each run of numbers.
func (t *tx) takeLeases() error {
	if err := t.takeRuns(t.w.takeBeats, t.fromBeat); err != nil {
		return err
	}
	return t.takeRuns(t.w.takeLeases, t.fromLease)
}

func (t *tx) takeRuns(stmt *sqlite.Stmt, numbers []int64) error {
	slices.Sort(numbers)
	for len(numbers) > 0 {
		n := 1
		for n < len(numbers) && numbers[n] == numbers[0]+int64(n) {
			n++
		}
		stmt.BindInt64(1, numbers[0])
		stmt.BindInt64(2, numbers[n-1])
		if err := t.change(stmt, n); err != nil {
			return err
		}
		numbers = numbers[n:]
	}
	return nil
}

// one runs a statement that must change one row.
func (t *tx) one(stmt *sqlite.Stmt) error { return t.change(stmt, 1) }

// change runs a statement that must change n rows.
func (t *tx) change(stmt *sqlite.Stmt, n int) error {
	if err := exec(stmt); err != nil {
		return err
	}
	if t.conn.Changes() != n {
		return scheduler.ErrMoved
	}
	return nil
}

// sort lists the moves by their new place, so that each table gets its rows in few statements.
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
	if err := t.putQueued(); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	err := t.w.delayed.insert(len(t.toDelayed), func(i int, c *row.Codec) {
		row.Turn(c, &t.toDelayed[i].Turn)
		row.Wait(c, &t.toDelayed[i].Wait)
	})
	if err != nil {
		return fmt.Errorf("delayed: %w", err)
	}
	if err := t.putLeased(); err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	err = t.w.attempt.insert(len(t.toAttempt), func(i int, c *row.Codec) { row.Attempt(c, t.toAttempt[i].Attempt) })
	if err != nil {
		return fmt.Errorf("attempt: %w", err)
	}
	if err := t.putDone(); err != nil {
		return fmt.Errorf("done: %w", err)
	}
	return nil
}

// putQueued puts rows into the queue. It first deletes a row that an earlier grant of the job left there.
func (t *tx) putQueued() error {
	q := t.store.queueRows
	for _, m := range t.toQueue {
		if seq := m.Turn.Seq; q.left(seq) {
			if err := t.dropLeft([]int64{seq}); err != nil {
				return err
			}
		}
		q.enqueue(m.Turn.Seq, m.From != rules.Nowhere)
	}
	return t.w.queue.insert(len(t.toQueue), func(i int, c *row.Codec) { row.Turn(c, &t.toQueue[i].Turn) })
}

func (t *tx) putLeased() error {
	t.leased, t.changed = t.leased[:0], t.changed[:0]
	for _, m := range t.toLease {
		h := t.store.leases.add(m.Held)
		if h == nil {
			return fmt.Errorf("%w: lease %s, or one of its job, is there already", scheduler.ErrBadCall, m.Held.ID)
		}
		t.leased = append(t.leased, h)
		if h.hasBeat {
			t.changed = append(t.changed, h)
		}
	}
	t.granted = append(t.granted, t.leased...)
	err := t.w.lease.insert(len(t.leased), func(i int, c *row.Codec) { grantRow(c, t.leased[i]) })
	if err != nil {
		return err
	}
	return t.saveBeats()
}

func (t *tx) putDone() error {
	t.started = t.started[:0]
	for _, m := range t.toDone {
		at, err := t.startedAt(&m.Done.Attempt)
		if err != nil {
			return err
		}
		t.started = append(t.started, at)
	}
	return t.w.done.insert(len(t.toDone), func(i int, c *row.Codec) {
		row.Done(c, t.toDone[i].Done)
		row.Integer(c, "started_at", &t.started[i])
	})
}

// twoGrants is the shortest record of a job that was granted twice: submitted, granted, ended, granted, ended.
const twoGrants = 5

// startedAt returns when a job that ends was first granted. Nearly all are granted once, and nothing is read for them.
func (t *tx) startedAt(end *rules.Attempt) (lessor.Instant, error) {
	if end.Turn.Fence == 0 || end.Turn.Steps < twoGrants && !end.Lease.IsZero() {
		return end.GrantedAt, nil
	}
	at, err := t.firstGrant(end.Turn.Job)
	return cmp.Or(at, end.GrantedAt), err
}
