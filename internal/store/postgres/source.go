package postgres

import (
	"encoding/hex"
	"math"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

// The tables of a list, newest job first: the columns of row.List of every row below a bound. They are ordered by seq,
// the key of the places, except those that find jobs by their ids. A job gets both at its submission and keeps them, so
// pages neither repeat nor lose a job that stays where it is.
var (
	listHeld = wire.SQL("select job, lane, seq, 3, " + stateHeld + ", fence from lease l" +
		" where seq < $1::bigint" + newest)
	listDone  = wire.SQL(inDone + newest)
	listAsked = wire.SQL(inDelayed + " and state = 'waiting'" + newest)
	listOver  = wire.SQL(inDelayed + " union all " + inDone + newest)

	listQueued = wire.SQL("(" + inQueue + newest + ") union all (" + inDelayed + newest + ") union all " +
		inCohorts + newest)
	listAgain = wire.SQL(inQueue + " and fence > 0 union all " + inDelayed + " and fence > 0" + newest)

	listAll = wire.SQL("select id, lane, seq, 0, '', 0 from job where id < $1::uuid" +
		" order by id desc limit $2::bigint")
	listClaimed = wherever("select id, lane, seq from job where id < $1::uuid order by id desc limit $2::bigint")
	listRuns    = wherever("select j.id, j.lane, j.seq from definition_job o join job j on j.id = o.job" +
		" where o.definition = $3::text and o.job < $1::uuid order by o.job desc limit $2::bigint")
	// An implied trace id is the hex of the job's id, and is not stored; the others have an index.
	listTraced = wherever("(select id, lane, seq from job where trace_id <> '' and trace_id = $3::text" +
		" and id < $1::uuid order by id desc limit $2::bigint)" +
		" union all select id, lane, seq from job where id = $4::uuid and id < $1 and trace_id = ''" +
		" order by id desc limit $2")

	seqBehind = wire.SQL("select id, seq from job where id <= $1::uuid order by id desc limit 1")
)

const (
	newest    = " order by seq desc limit $2::bigint"
	stateHeld = "case l.first_beat_at when 0 then 'leased' else 'running' end"

	inDone    = "select job, lane, seq, 4 as place, state, fence from done where seq < $1::bigint"
	inDelayed = "select job, lane, seq, 2 as place, state, fence from delayed where seq < $1::bigint"
	inQueue   = "select job, lane, seq, 1 as place, 'queued' as state, fence from queue where seq < $1::bigint"
	// inCohorts reads no more cohorts than the page has jobs: each cohort has one.
	inCohorts = "select u.job, u.lane, l.first + u.n - 1, 1, 'queued', 0 from (select first, jobs from cohort_left" +
		" where first < $1::bigint and jobs <> 0 order by first desc limit $2::bigint) l" + cohortJobs +
		" and l.first + u.n - 1 < $1"
)

// wherever finds the places of the jobs of a page.
func wherever(page string) *wire.Statement {
	return wire.SQL("select p.id, p.lane, p.seq, case when l.seq is not null then 3 when e.seq is not null then 4" +
		" when w.seq is not null then 2 else 1 end, case when l.seq is not null then " + stateHeld +
		" else coalesce(e.state, w.state, 'queued') end, coalesce(l.fence, e.fence, w.fence, q.fence, 0)" +
		" from (" + page + ") p left join lease l on " + wire.At("l.seq", "p.seq") + " and l.job = p.id" +
		" left join done e on " + wire.At("e.seq", "p.seq") + " and e.job = p.id" +
		" left join delayed w on " + wire.At("w.seq", "p.seq") + " and w.job = p.id" +
		" left join queue q on " + wire.At("q.seq", "p.seq") + " and q.job = p.id order by p.id desc")
}

// source is a statement that a list is read from.
type source struct {
	stmt *wire.Statement
	byID bool     // ordered by the id of the job
	keys [][]byte // parameters behind bound and limit
}

// sourceOf returns the smallest source that has all jobs of a query.
func sourceOf(q scheduler.ListQuery) source {
	switch {
	case q.Trace != "":
		return source{stmt: listTraced, byID: true, keys: [][]byte{wire.Text(q.Trace), madeFrom(q.Trace)}}
	case q.Definition != "":
		return source{stmt: listRuns, byID: true, keys: [][]byte{wire.Text(q.Definition)}}
	}
	switch q.State {
	case lessor.Queued:
		return source{stmt: listQueued}
	case lessor.Leased, lessor.Running:
		return source{stmt: listHeld}
	case lessor.Completed, lessor.Cancelled:
		return source{stmt: listDone}
	case lessor.Waiting:
		return source{stmt: listAsked}
	case lessor.Failed, lessor.Expired: // for good, or until the retry
		return source{stmt: listOver}
	}
	switch q.Status {
	case lessor.RunQueued:
		return source{stmt: listQueued}
	case lessor.RunClaimed, lessor.RunRunning:
		return source{stmt: listHeld}
	case lessor.RunSuccess, lessor.RunFailed:
		return source{stmt: listDone}
	case lessor.RunRetrying:
		return source{stmt: listAgain}
	}
	if q.Claimed || q.Status != "" {
		return source{stmt: listClaimed, byID: true}
	}
	return source{stmt: listAll, byID: true}
}

// madeFrom returns the id of the job from which a trace id is made, if it is implied; nil if it cannot be.
func madeFrom(trace string) []byte {
	id, err := hex.DecodeString(trace)
	if err != nil || len(id) != len(lessor.UUID{}) {
		return nil
	}
	return id
}

func (v *view) read(src source, bound []byte, size int) ([]row.Listed, error) {
	batch := make([]row.Listed, 0, size)
	err := v.query("list jobs", src.stmt, collect(&batch, row.List),
		append([][]byte{bound, wire.Int8(int64(size))}, src.keys...)...)
	return batch, err
}

// bound returns the bound at which a page begins.
func (v *view) bound(src source, after *lessor.JobID) ([]byte, error) {
	switch {
	case src.byID:
		return before(after), v.err
	case after == nil:
		return wire.Int8(math.MaxInt64), v.err
	}
	seq := int64(0) // there is no older job
	// The job itself, or the next older one if it was purged.
	err := v.query("list jobs", seqBehind, func(r *wire.Row) error {
		found := lessor.JobID{UUID: r.ID()}
		seq = r.Int()
		if found != *after {
			seq++
		}
		return nil
	}, wire.ID(after.UUID))
	return wire.Int8(seq), err
}

// behind returns the bound at which the next read of a page begins.
func (s source) behind(l row.Listed) []byte {
	if s.byID {
		return wire.ID(l.Job.UUID)
	}
	return wire.Int8(l.Seq)
}
