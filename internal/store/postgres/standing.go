package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

// readStandings is one statement, and so sees one snapshot also inside a transaction: it never finds a job that moves
// in two places or in none.
var readStandings = wire.SQL("select " + row.Of("j", jobColumns) + ", " + row.Of("n", laneColumns) + ", " +
	row.Of("q", queuedColumns) + ", " + row.Of("d", waitingColumns) + ", " + row.Of("l", leaseColumns) + ", " +
	row.Of("e", doneColumns) + ", " + row.Of("r", reportColumns) + ", " + row.Of("a", failureColumns) +
	", coalesce(e.started_at, (select granted_at from attempt where attempt.job = j.id order by fence limit 1))" +
	" from job j join lane n on n.id = j.lane" +
	" left join lateral (select " + turnColumns + ", 0 as cohort from queue where seq = j.seq and job = j.id" +
	" union all select j.id, j.lane, j.seq, 0, j.max_attempts, 0, 0, 1," +
	" (select queued_at from cohort where first = c.first), c.first from " + cohortOf + ") q on true" +
	" left join delayed d on " + wire.At("d.seq", "j.seq") + " and d.job = j.id" +
	" left join lease l on " + wire.At("l.seq", "j.seq") + " and l.job = j.id" +
	" left join done e on " + wire.At("e.seq", "j.seq") + " and e.job = j.id" +
	" left join report r on " + wire.At("r.job", "j.id") +
	" left join lateral (select " + failureColumns + " from attempt where attempt.job = j.id" +
	" and outcome in ('failed', 'expired') order by fence desc limit 1) a on true where j.id = any($1::uuid[])")

var failureColumns = row.Columns(row.Failure)

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
	c := decode(r)
	s := &rules.Standing{Spec: readSpec(c)}
	if present(r, queuedColumns) {
		s.Place = rules.InQueue
		queuedRow(c, &s.Turn)
	}
	if present(r, waitingColumns) {
		s.Place = rules.Delayed
		row.Turn(c, &s.Turn)
		row.Wait(c, &s.Wait)
	}
	if present(r, leaseColumns) {
		s.Held = &rules.Held{}
		leaseRow(c, s.Held)
		s.Place, s.Turn = rules.Leased, s.Held.Turn
	}
	if present(r, doneColumns) {
		s.Done = &rules.Done{}
		row.Done(c, s.Done)
		s.Place, s.Turn, s.LastError = rules.Ended, s.Done.Attempt.Turn, s.Done.Attempt.LastError()
	}
	if present(r, reportColumns) {
		s.Report = &rules.Report{}
		row.Report(c, s.Report)
	}
	var failed rules.Attempt
	row.Failure(c, &failed)
	if s.ErrorLease = failed.Lease; s.Place != rules.Ended {
		s.LastError = failed.LastError()
	}
	s.StartedAt = r.Instant()
	return s, c.Err
}

// present reports whether a joined row is there, and passes over its columns if not. The first column of a row is never
// null.
func present(r *wire.Row, columns string) bool {
	if !r.Null() {
		return true
	}
	r.Skip(wire.Width(columns) - 1)
	return false
}

// Histories implements scheduler.View.
func (v *view) Histories(_ context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.History, error) {
	if v.err != nil {
		return nil, v.err
	}
	standings := map[lessor.JobID]*rules.Standing{}
	var attempts []rules.Attempt
	var notes []rules.Note
	v.addStandings(ids, standings)
	v.add("read attempts", wire.Step{Stmt: readAttempts, Each: collect(&attempts, row.Attempt)}, wire.IDs(ids))
	v.add("read notes", wire.Step{Stmt: readNotes, Each: collect(&notes, row.Note)}, wire.IDs(ids))
	if err := v.send("read histories"); err != nil {
		return nil, err
	}
	histories := make(map[lessor.JobID]*rules.History, len(standings))
	for id, s := range standings {
		histories[id] = &rules.History{Standing: *s}
	}
	for _, a := range attempts {
		if h := histories[a.Turn.Job]; h != nil {
			h.Attempts = append(h.Attempts, a)
		}
	}
	for _, n := range notes {
		if h := histories[n.Job]; h != nil {
			h.Notes = append(h.Notes, n)
		}
	}
	return histories, nil
}
