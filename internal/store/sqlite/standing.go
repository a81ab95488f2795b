package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

const (
	readQueuedOf = "select " + turnColumns + " from queue where seq = ? and job = ?"
	readDelayOf  = "select " + waitingColumns + " from delayed where seq = ? and job = ?"
	readLeaseOf  = "select " + leaseColumns + " from " + leaseTables + " where lease.n = ? and job = ?"
	readDoneOf   = "select " + doneColumns + " from done where seq = ? and job = ?"
)

// Standings implements scheduler.View.
func (v *view) Standings(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Standing, error) {
	standings := make(map[lessor.JobID]*rules.Standing, len(ids))
	for _, id := range ids {
		s, err := v.standing(id)
		if err != nil {
			return nil, readFault(ctx, "read standings", err)
		}
		if s != nil {
			standings[id] = s
		}
	}
	return standings, nil
}

// standing returns nil for a job that is not known.
func (v *view) standing(id lessor.JobID) (*rules.Standing, error) {
	spec, err := v.spec(id)
	if spec == nil || err != nil {
		return nil, err
	}
	s := &rules.Standing{Spec: spec}
	if err := v.findPlace(s); err != nil {
		return nil, err
	}
	if s.Report, err = v.report(id); err != nil {
		return nil, err
	}
	if s.Turn.Fence != 0 {
		err = v.lookBack(s)
	}
	return s, err
}

// findPlace finds where a job is, of which ID and Seq are known.
func (v *view) findPlace(s *rules.Standing) error {
	// The queue comes last: a job that is nowhere else is in it, and a row there of any other job is left over.
	for _, look := range []func(*rules.Standing) error{v.lookLeased, v.lookEnded, v.lookDelayed, v.lookQueued} {
		if err := look(s); err != nil || s.Place != rules.Nowhere {
			return err
		}
	}
	return nil
}

// lookBack adds what attempts tell after which the job went on.
func (v *view) lookBack(s *rules.Standing) error {
	err := query(v.conn, readLastError, func(a *args) { a.id(s.Spec.ID.UUID) }, func(r *row) error {
		said := lastError(rules.Outcome(r.text()), r.text(), r.text())
		s.ErrorLease = lessor.LeaseID{UUID: r.id()}
		if s.Place != rules.Ended {
			s.LastError = said
		}
		return nil
	})
	if s.Place == rules.Ended || err != nil {
		return err
	}
	s.StartedAt, err = v.firstGrant(s.Spec.ID)
	if s.StartedAt == 0 && s.Place == rules.Leased {
		s.StartedAt = s.Held.IssuedAt
	}
	return err
}

// lookAt reads a job's row in one place, if it is there.
func (v *view) lookAt(text string, s *rules.Standing, found func(*row)) error {
	return query(v.conn, text,
		func(a *args) {
			a.int(s.Spec.Seq)
			a.id(s.Spec.ID.UUID)
		},
		func(r *row) error {
			found(r)
			return nil
		})
}

func (v *view) lookQueued(s *rules.Standing) error {
	return v.lookAt(readQueuedOf, s, func(r *row) { s.Place, s.Turn = rules.InQueue, readTurn(r) })
}

func (v *view) lookDelayed(s *rules.Standing) error {
	return v.lookAt(readDelayOf, s, func(r *row) {
		w := readWaiting(r)
		s.Place, s.Turn, s.Wait = rules.Delayed, w.Turn, w.Wait
	})
}

func (v *view) lookLeased(s *rules.Standing) error {
	for _, n := range v.leases.find(s.Spec.Seq) {
		err := query(v.conn, readLeaseOf,
			func(a *args) {
				a.int(n)
				a.id(s.Spec.ID.UUID)
			},
			func(r *row) error {
				s.Held = &readLease(r).Held
				s.Place, s.Turn = rules.Leased, s.Held.Turn
				return nil
			})
		if s.Place != rules.Nowhere || err != nil {
			return err
		}
	}
	return nil
}

func (v *view) lookEnded(s *rules.Standing) error {
	return v.lookAt(readDoneOf, s, func(r *row) {
		s.Done, s.StartedAt = readDone(r)
		end := &s.Done.Attempt
		s.Place, s.Turn, s.LastError = rules.Ended, end.Turn, lastError(end.Outcome, end.Reason, end.Error)
	})
}

// History implements scheduler.View.
func (v *view) History(ctx context.Context, id lessor.JobID) (*rules.History, error) {
	s, err := v.standing(id)
	if s == nil || err != nil {
		return nil, readFault(ctx, "read standing", err)
	}
	h := &rules.History{Standing: *s}
	err = query(v.conn, readAttempts, func(a *args) { a.id(id.UUID) }, func(r *row) error {
		h.Attempts = append(h.Attempts, readAttempt(r))
		return nil
	})
	if err != nil {
		return nil, readFault(ctx, "read attempts", err)
	}
	err = query(v.conn, readNotes, func(a *args) { a.id(id.UUID) }, func(r *row) error {
		h.Notes = append(h.Notes, readNote(r))
		return nil
	})
	if err != nil {
		return nil, readFault(ctx, "read notes", err)
	}
	return h, nil
}
