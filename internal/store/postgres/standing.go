package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/postgres/wire"
)

// readStandings is one statement, and so sees one snapshot also inside a transaction: a job that moves is never seen twice or
// nowhere.
var readStandings = wire.SQL("select " + wire.Of("j", jobColumns) + ", " + wire.Of("n", laneColumns) + ", " + wire.Of("q", queuedColumns) + ", " +
	wire.Of("d", waitingColumns) + ", " + wire.Of("l", leaseColumns) + ", " + wire.Of("e", doneColumns) + ", " + wire.Of("r", reportColumns) +
	", a.outcome, a.reason, a.error, a.lease, coalesce(e.started_at, (select granted_at from attempt where attempt.job = j.id order by fence limit 1)) from job j join lane n on n.id = j.lane" +
	" left join lateral (select " + turnColumns + ", 0 as cohort from queue where seq = j.seq and job = j.id" +
	" union all select j.id, j.lane, j.seq, 0, j.max_attempts, 0, 0, 1, (select queued_at from cohort where first = c.first), c.first from " + cohortOf + ") q on true left join delayed d on " + wire.At("d.seq", "j.seq") + " and d.job = j.id" +
	" left join lease l on " + wire.At("l.seq", "j.seq") + " and l.job = j.id left join done e on " + wire.At("e.seq", "j.seq") + " and e.job = j.id left join report r on " + wire.At("r.job", "j.id") +
	" left join lateral (select outcome, reason, error, lease from attempt where attempt.job = j.id and outcome in ('failed', 'expired')" +
	" order by fence desc limit 1) a on true where j.id = any($1::uuid[])")

// Standings implements scheduler.View.
func (v *view) Standings(_ context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Standing, error) {
	standings := make(map[lessor.JobID]*rules.Standing, len(ids))
	if len(ids) == 0 || v.err != nil {
		return standings, v.err
	}
	v.addStandings(ids, standings)
	return standings, v.send("read standings")
}

func (v *view) addStandings(ids []lessor.JobID, into map[lessor.JobID]*rules.Standing) {
	v.add("read standings", wire.Step{Stmt: readStandings, Each: func(r *wire.Row) error {
		s, err := readStanding(r)
		if err == nil {
			into[s.Spec.ID] = s
		}
		return err
	}}, wire.IDs(ids))
}

func readStanding(r *wire.Row) (*rules.Standing, error) {
	spec, err := readSpec(r)
	if err != nil {
		return nil, err
	}
	s := &rules.Standing{Spec: spec}
	if present(r, queuedColumns) {
		s.Place, s.Turn = rules.InQueue, readQueued(r)
	}
	if present(r, waitingColumns) {
		w := readWaiting(r)
		s.Place, s.Turn, s.Wait = rules.Delayed, w.Turn, w.Wait
	}
	if present(r, leaseColumns) {
		s.Held = readLease(r)
		s.Place, s.Turn = rules.Leased, s.Held.Turn
	}
	if present(r, doneColumns) {
		s.Done = readDone(r)
		end := &s.Done.Attempt
		s.Place, s.Turn, s.LastError = rules.Ended, end.Turn, lastError(end.Outcome, end.Reason, end.Error)
	}
	if present(r, reportColumns) {
		s.Report = readReport(r)
	}
	if failed := lastError(rules.Outcome(r.Text()), r.Text(), r.Text()); s.Place != rules.Ended {
		s.LastError = failed
	}
	s.ErrorLease.UUID, s.StartedAt = r.ID(), r.Instant()
	return s, nil
}

// present reports whether a joined row is there, and passes over its columns if not. The first column of none is ever null.
func present(r *wire.Row, columns string) bool {
	if r.IsNull() {
		r.Skip(wire.Width(columns))
		return false
	}
	return true
}

// History implements scheduler.View.
func (v *view) History(_ context.Context, id lessor.JobID) (*rules.History, error) {
	if v.err != nil {
		return nil, v.err
	}
	standings := map[lessor.JobID]*rules.Standing{}
	h := &rules.History{}
	v.addStandings([]lessor.JobID{id}, standings)
	v.add("read attempts", wire.Step{Stmt: readAttempts, Each: func(r *wire.Row) error {
		h.Attempts = append(h.Attempts, readAttempt(r))
		return nil
	}}, wire.ID(id.UUID))
	v.add("read notes", wire.Step{Stmt: readNotes, Each: func(r *wire.Row) error {
		h.Notes = append(h.Notes, readNote(r))
		return nil
	}}, wire.ID(id.UUID))
	if err := v.send("read history"); err != nil || standings[id] == nil {
		return nil, err
	}
	h.Standing = *standings[id]
	return h, nil
}
