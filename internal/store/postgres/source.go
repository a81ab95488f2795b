package postgres

import (
	"encoding/hex"
	"math"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// The tables of a list, newest job first: job, lane, state, status of the run (” = there is none) and place in line of every row
// below a bound. They are ordered by seq, which is how the places are keyed, but those that begin at the job by its id. Both are
// given at submission and never change, so pages neither repeat nor lose a job that stays where it is.
var (
	listHeld = wire.SQL("select job, lane, " + stateHeld + ", " + statusHeld + ", seq from lease l" +
		" where seq < $1::bigint" + newest)
	listDone   = wire.SQL(inDone + newest)
	listOver   = wire.SQL(inDelayed + " union all " + inDone + newest)
	listQueued = wire.SQL("(" + inQueue + newest + ") union all (" + inDelayed + newest + ") union all " + inCohorts + newest)
	listAgain  = wire.SQL(inQueue + " and fence > 0 union all " + inDelayed + " and fence > 0" + newest)

	listAll     = wire.SQL("select id, lane, '', '', seq from job where id < $1::uuid order by id desc limit $2::bigint")
	listClaimed = wherever("select id, lane, seq from job where id < $1::uuid order by id desc limit $2::bigint")
	listRuns    = wherever("select j.id, j.lane, j.seq from definition_job o join job j on j.id = o.job" +
		" where o.definition = $3::text and o.job < $1::uuid order by o.job desc limit $2::bigint")
	// A trace id that was made up is the hex of the job's id, and is not stored; the others have an index.
	listTraced = wherever("(select id, lane, seq from job where trace_id <> '' and trace_id = $3::text" +
		" and id < $1::uuid order by id desc limit $2::bigint)" +
		" union all select id, lane, seq from job where id = $4::uuid and id < $1 and trace_id = '' order by id desc limit $2")

	seqBehind = wire.SQL("select id, seq from job where id <= $1::uuid order by id desc limit 1")
)

const (
	newest = " order by seq desc limit $2::bigint"

	stateHeld   = "case l.first_beat_at when 0 then 'leased' else 'running' end"
	statusHeld  = "case l.first_beat_at when 0 then 'CLAIMED' else 'RUNNING' end"
	statusDone  = "case when e.state = 'completed' then 'SUCCESS' when e.started_at > 0 then 'FAILED' else '' end"
	statusAgain = "case when fence > 0 then 'RETRYING' else '' end"

	inDone    = "select job, lane, state, " + statusDone + " as status, seq from done e where seq < $1::bigint"
	inDelayed = "select job, lane, state, " + statusAgain + " as status, seq from delayed where seq < $1::bigint"
	// inCohorts reads no more cohorts than jobs are asked for: each has one.
	inCohorts = "select u.job, u.lane, 'queued', '', l.first + u.n - 1 from (select first, jobs from cohort_left" +
		" where first < $1::bigint and jobs <> 0 order by first desc limit $2::bigint) l" + cohortJobs + " and l.first + u.n - 1 < $1"
	inQueue = "select job, lane, 'queued' as state, " + statusAgain + " as status, seq from queue where seq < $1::bigint"
)

// wherever finds out where the jobs of a page are.
func wherever(page string) *wire.Statement {
	return wire.SQL("select p.id, p.lane, case when l.seq is not null then " + stateHeld + " else coalesce(e.state, w.state, 'queued') end," +
		" case when l.seq is not null then " + statusHeld + " when e.seq is not null then " + statusDone +
		" when w.fence > 0 or q.fence > 0 then 'RETRYING' else '' end, p.seq from (" + page + ") p" +
		" left join lease l on " + wire.At("l.seq", "p.seq") + " and l.job = p.id left join done e on " + wire.At("e.seq", "p.seq") + " and e.job = p.id" +
		" left join delayed w on " + wire.At("w.seq", "p.seq") + " and w.job = p.id left join queue q on " + wire.At("q.seq", "p.seq") + " and q.job = p.id order by p.id desc")
}

// source is what a list is read from.
type source struct {
	stmt *wire.Statement
	byID bool     // ordered by the id of the job
	keys [][]byte // parameters behind bound and limit
}

// sourceOf returns the smallest source of all that a query asks for.
func sourceOf(q scheduler.ListQuery) source {
	switch {
	case q.Trace != "":
		return source{stmt: listTraced, byID: true, keys: [][]byte{wire.Text(q.Trace), madeUp(q.Trace)}}
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
	case lessor.Failed, lessor.Expired: // for good, or until the retry
		return source{stmt: listOver}
	}
	switch q.Status {
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

// madeUp returns the id of the job whose trace id was made up as this; nil if it cannot be one.
func madeUp(trace string) []byte {
	id, err := hex.DecodeString(trace)
	if err != nil || len(id) != len(lessor.UUID{}) {
		return nil
	}
	return id
}

// listed is one job that is looked at.
type listed struct {
	job    lessor.JobID
	lane   rules.LaneID
	state  lessor.State
	status lessor.RunStatus
	seq    int64
}

// fits reports whether the job is where a query asks for it.
func (l *listed) fits(q scheduler.ListQuery) bool {
	return (q.State == "" || l.state == q.State) && (q.Status == "" || l.status == q.Status) && (!q.Claimed || l.status != "")
}

func (v *view) read(src source, bound []byte, size int) ([]listed, error) {
	batch := make([]listed, 0, size)
	err := v.query("list jobs", src.stmt, func(r *wire.Row) error {
		batch = append(batch, listed{
			job: lessor.JobID{UUID: r.ID()}, lane: rules.LaneID(r.Int()), state: lessor.State(r.Text()), status: lessor.RunStatus(r.Text()), seq: r.Int(),
		})
		return nil
	}, append([][]byte{bound, wire.Int8(int64(size))}, src.keys...)...)
	return batch, err
}

// bound returns where a page begins.
func (v *view) bound(src source, after *lessor.JobID) ([]byte, error) {
	switch {
	case src.byID:
		return before(after), v.err
	case after == nil:
		return wire.Int8(math.MaxInt64), v.err
	}
	seq := int64(0) // there is no older job
	// The job itself, or if it is gone by now the next older one.
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

// behind returns where the next read of a page begins.
func (s source) behind(l listed) []byte {
	if s.byID {
		return wire.ID(l.job.UUID)
	}
	return wire.Int8(l.seq)
}
