package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/row"
)

var (
	readQueuedOf = "select " + row.Columns(row.Turn) + " from queue where seq = ? and job = ?"
	readDelayOf  = "select " + waitingColumns + " from delayed where seq = ? and job = ?"
	readLeaseOf  = selectLease + " where lease.n = ? and job = ?"
	doneColumns  = row.Columns(row.Done) + ", started_at"
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
		err = v.addAttempts(s)
	}
	return s, err
}

// findPlace finds the place of a job whose ID and Seq are known.
func (v *view) findPlace(s *rules.Standing) error {
	// The queue comes last: a row there is left over if the job is in another place.
	for _, read := range []func(*rules.Standing) error{v.readLeased, v.readEnded, v.readDelayed, v.readQueued} {
		if err := read(s); err != nil || s.Place != rules.Nowhere {
			return err
		}
	}
	return nil
}

// addAttempts adds what is known from the attempts after which the job continued.
func (v *view) addAttempts(s *rules.Standing) error {
	failed, err := find(v.conn, readFailure, func(a *args) { a.ID(s.Spec.ID.UUID) }, row.Failure)
	if failed != nil {
		s.ErrorLease = failed.Lease
		if s.Place != rules.Ended {
			s.LastError = failed.LastError()
		}
	}
	if s.Place == rules.Ended || err != nil {
		return err
	}
	s.StartedAt, err = v.firstGrant(s.Spec.ID)
	return err
}

// readAt reads a job's row in one place, if it is there.
func (v *view) readAt(text string, s *rules.Standing, found func(*result)) error {
	return query(v.conn, text,
		func(a *args) {
			a.Int(s.Spec.Seq)
			a.ID(s.Spec.ID.UUID)
		},
		func(r *result) error {
			found(r)
			return nil
		})
}

func (v *view) readQueued(s *rules.Standing) error {
	return v.readAt(readQueuedOf, s, func(r *result) {
		s.Place = rules.InQueue
		row.Turn(r.codec, &s.Turn)
	})
}

func (v *view) readDelayed(s *rules.Standing) error {
	return v.readAt(readDelayOf, s, func(r *result) {
		s.Place = rules.Delayed
		row.Turn(r.codec, &s.Turn)
		row.Wait(r.codec, &s.Wait)
	})
}

func (v *view) readLeased(s *rules.Standing) error {
	for _, n := range v.leases.find(s.Spec.Seq) {
		err := query(v.conn, readLeaseOf,
			func(a *args) {
				a.Int(n)
				a.ID(s.Spec.ID.UUID)
			},
			func(r *result) error {
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

func (v *view) readEnded(s *rules.Standing) error {
	return v.readAt(readDoneOf, s, func(r *result) {
		s.Done = &rules.Done{}
		row.Done(r.codec, s.Done)
		row.Integer(r.codec, "started_at", &s.StartedAt)
		s.Place, s.Turn, s.LastError = rules.Ended, s.Done.Attempt.Turn, s.Done.Attempt.LastError()
	})
}

// Histories implements scheduler.View.
func (v *view) Histories(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.History, error) {
	standings, err := v.Standings(ctx, ids)
	histories := make(map[lessor.JobID]*rules.History, len(standings))
	for id, s := range standings {
		h := &rules.History{Standing: *s}
		bind := func(a *args) { a.ID(id.UUID) }
		if h.Attempts, err = collect(v.conn, readAttempts, bind, row.Attempt); err != nil {
			return nil, readFault(ctx, "read attempts", err)
		}
		if h.Notes, err = collect(v.conn, readNotes, bind, row.Note); err != nil {
			return nil, readFault(ctx, "read notes", err)
		}
		histories[id] = h
	}
	return histories, err
}
