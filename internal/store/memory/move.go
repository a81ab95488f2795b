package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// errTwice is a fault of the caller, and never of another node.
var errTwice = errors.New("one call moves a job twice")

// Move implements scheduler.Tx: all rows are taken from where they are before the first is put where it goes.
func (t *tx) Move(_ context.Context, moves []scheduler.Move) error {
	return t.do("move jobs", func() error {
		taken := make([]*job, len(moves))
		for i := range moves {
			var err error
			if taken[i], err = t.find(&moves[i]); err != nil {
				return err
			}
			if slices.Contains(taken[:i], taken[i]) {
				return fmt.Errorf("%w: job %s", errTwice, taken[i].Spec.ID)
			}
		}
		t.write(func(s *tables) {
			for _, j := range taken {
				s.take(j)
			}
		})
		for i := range moves {
			if err := t.put(taken[i], &moves[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// find locks the row that moves. It must be where the move says.
func (t *tx) find(m *scheduler.Move) (*job, error) {
	if m.From > rules.Ended || m.To == rules.Nowhere || m.To > rules.Ended {
		return nil, fmt.Errorf("%w: a job cannot move from place %d to %d", scheduler.ErrBadCall, m.From, m.To)
	}
	turn := m.Turn
	if m.From == rules.Leased {
		turn = m.Held.Turn
	}
	if err := t.acquire(lock{"job", key{id: turn.Job.UUID}}); err != nil {
		return nil, err
	}
	j, ok := t.state.jobs.get(key{id: turn.Job.UUID})
	if !ok || j.Place != m.From || m.From != rules.Nowhere && j.Turn.Seq != turn.Seq ||
		m.From == rules.Leased && j.Turn.Fence != turn.Fence {
		return nil, fmt.Errorf("%w: job %s is not at place %d", scheduler.ErrMoved, turn.Job, m.From)
	}
	return j, nil
}

// put writes the row of a job that was taken from its place, with the record of the move.
func (t *tx) put(was *job, m *scheduler.Move) error {
	j := new(*was)
	j.Place, j.Turn, j.Wait, j.Held, j.Done = m.To, m.Turn, rules.Wait{}, nil, nil
	switch m.To {
	case rules.Delayed:
		j.Wait = m.Wait
	case rules.Leased:
		if err := t.takeLockKey(m.Held); err != nil {
			return err
		}
		j.Held, j.Turn = new(*m.Held), m.Held.Turn
		j.Held.Turn.RowRef = 0
		t.store.origin.fence = max(t.store.origin.fence, m.Held.Turn.Fence)
		if j.StartedAt == 0 {
			j.StartedAt = m.Held.IssuedAt
		}
	case rules.Ended:
		j.Done, j.Turn = new(*m.Done), m.Done.Attempt.Turn
		j.Done.Attempt.Turn.RowRef = 0
	case rules.Nowhere, rules.InQueue:
	}
	j.Turn.RowRef = 0
	if a := m.Attempt; a != nil && (a.Outcome == rules.OutcomeFailed || a.Outcome == rules.OutcomeExpired) {
		j.LastError, j.ErrorLease = a.LastError(), a.Lease
	}
	t.write(func(s *tables) {
		s.place(j)
		if a := m.Attempt; a != nil {
			s.attempts.put(key{id: j.Spec.ID.UUID, n: a.Turn.Fence}, a)
			s.ends.put(key{id: a.Lease.UUID}, a)
		}
		if j.Done != nil && !j.Done.Attempt.Lease.IsZero() {
			s.ends.put(key{id: j.Done.Attempt.Lease.UUID}, &j.Done.Attempt)
		}
	})
	return nil
}

// takeLockKey takes the lock key of a new lease, which no other lease of its tenant may have.
func (t *tx) takeLockKey(h *rules.Held) error {
	if h.LockKey == "" {
		return nil
	}
	k := key{text: h.LockKey, id: h.Tenant.UUID}
	if err := t.acquire(lock{"lock key", k}); err != nil {
		return err
	}
	if t.state.held.has(k) {
		return fmt.Errorf("%w: lock %q is held", scheduler.ErrBadCall, h.LockKey)
	}
	return nil
}

// Note implements scheduler.Tx.
func (t *tx) Note(_ context.Context, notes []rules.Note) error {
	return t.do("note", func() error {
		for _, n := range notes {
			t.db.notes++
			k := key{id: n.Job.UUID, n: t.db.notes}
			t.write(func(s *tables) { s.notes.put(k, n) })
		}
		return nil
	})
}

// Due implements scheduler.Tx. It passes over rows that another node is promoting.
func (t *tx) Due(_ context.Context, now lessor.Instant, limit int) ([]scheduler.Waiting, error) {
	return t.lockWaiting("lock due jobs", limit, func(j *job) (fits, more bool) {
		return j.Wait.Until <= now, j.Wait.Until <= now
	})
}

// Ahead implements scheduler.Tx.
func (t *tx) Ahead(_ context.Context, after lessor.Instant, limit int) ([]scheduler.Waiting, error) {
	return t.lockWaiting("lock waits that began in the future", limit, func(j *job) (fits, more bool) {
		return j.Turn.Fence > 0 && j.Turn.QueuedAt > after, true
	})
}

// lockWaiting locks waiting jobs that fit and that no other node has locked, the earliest first.
func (t *tx) lockWaiting(
	verb string, limit int, fits func(*job) (fits, more bool),
) (waiting []scheduler.Waiting, err error) {
	err = t.do(verb, func() error {
		for _, j := range t.state.delayed.all() {
			fit, more := fits(j)
			if !more || len(waiting) >= limit {
				break
			}
			if fit && t.try(j.lock()) {
				waiting = append(waiting, scheduler.Waiting{Turn: j.Turn, Wait: j.Wait})
			}
		}
		t.readClock()
		return nil
	})
	return waiting, err
}

// NextDue implements scheduler.View.
func (v *view) NextDue(context.Context) (lessor.Instant, error) {
	s := v.read("read next due time")
	for k := range s.delayed.from(key{n: 1}) {
		return lessor.Instant(k.n), v.err
	}
	return 0, v.err
}

// CountWaiting implements scheduler.View.
func (v *view) CountWaiting(context.Context) (n int, err error) {
	s := v.read("count waiting jobs")
	for _, j := range s.delayed.all() {
		if j.Wait.State == lessor.Waiting {
			n++
		}
	}
	return n, v.err
}

// EachQueued implements scheduler.View.
func (v *view) EachQueued(_ context.Context, fn func(rules.Turn) error) error {
	s := v.read("read the queue")
	for _, j := range s.queue.all() {
		if err := fn(j.Turn); err != nil {
			return err
		}
	}
	return v.err
}
