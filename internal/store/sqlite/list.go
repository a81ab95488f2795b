package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	// readPerPage bounds the cost of a page when few jobs match.
	readPerPage = 20_000
	// placeCost is the cost of finding the place of one job, in rows that are only read.
	placeCost = 10
)

// The tables of a list, newest job first: job, lane, seq, place (as rules.Place numbers them; 0 = not known), state and
// fence of every row below a bound. Those of places are ordered by seq, the others by job id. A job gets both at its
// submission and keeps them, so pages neither repeat nor lose a job that stays where it is. No plan may sort: a page
// reads no more than it needs (TestNoStatementReadsAWholeTable).
const (
	fromQueue   = "select job, lane, seq, 1, 'queued', fence from queue where seq < +?1"
	fromDelayed = "select job, lane, seq, 2, state, fence from delayed where seq < +?1"
	fromDone    = "select job, lane, seq, 4, state, fence from done where seq < +?1"

	listDone    = fromDone + " order by seq desc"
	listAsked   = fromDelayed + " and state = 'waiting' order by seq desc"
	listOver    = fromDelayed + " union all " + fromDone + " order by seq desc"
	listWaiting = fromQueue + " union all " + fromDelayed + " order by seq desc"
	listPlaces  = fromQueue + " union all " + fromDelayed + " union all " + fromDone + " order by seq desc"
	listLeases  = "" // the leases are known from memory; readLeased reads one of them

	readLeased = "select job, lane, seq, 3, iif(coalesce(first_beat_at, 0) = 0, 'leased', 'running'), fence" +
		" from " + leaseTables + " where lease.n = ?"

	fromJob   = "select id, lane, seq, 0, '', 0 from job where id < +?1"
	listAll   = fromJob + " order by id desc"
	listTrace = fromJob + " and id = ?3 and trace_id = ?2 union all " + fromJob +
		" and trace_id = ?2 and trace_id <> hex(id) collate nocase order by id desc"
	listDefinition = "select definition_job.job, job.lane, job.seq, iif(open, 0, 4), coalesce(state, '')," +
		" coalesce(fence, 0) from definition_job cross join job on job.id = definition_job.job" +
		" left join done on done.seq = job.seq where definition_job.job < +?1 and definition = ?2" +
		" order by definition_job.job desc"
)

// listOf returns the tables of the places that a query is about, and whether leases are among them; listAll for all
// jobs.
func listOf(q scheduler.ListQuery) (text string, leases bool) {
	switch q.State {
	case lessor.Queued:
		return listWaiting, false
	case lessor.Leased, lessor.Running:
		return listLeases, true
	case lessor.Completed, lessor.Cancelled:
		return listDone, false
	case lessor.Waiting:
		return listAsked, false
	case lessor.Failed, lessor.Expired: // for good, or until the retry
		return listOver, false
	}
	switch q.Status {
	case lessor.RunClaimed, lessor.RunRunning:
		return listLeases, true
	case lessor.RunQueued, lessor.RunRetrying:
		return listWaiting, false
	case lessor.RunSuccess, lessor.RunFailed:
		return listDone, false
	}
	if q.Claimed {
		return listPlaces, true
	}
	return listAll, false
}

// List implements scheduler.View. It reads no more than readPerPage jobs.
func (v *view) List(ctx context.Context, q scheduler.ListQuery) (scheduler.ListPage, error) {
	ids, next, err := v.match(q)
	if err != nil {
		return scheduler.ListPage{}, readFault(ctx, "list jobs", err)
	}
	page := scheduler.ListPage{Standings: make([]*rules.Standing, 0, len(ids)), Next: next}
	for _, id := range ids {
		s, err := v.standing(id)
		if err != nil {
			return scheduler.ListPage{}, readFault(ctx, "list jobs", err)
		}
		page.Standings = append(page.Standings, s)
	}
	return page, nil
}
