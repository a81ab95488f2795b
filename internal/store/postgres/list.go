package postgres

import (
	"context"
	"maps"
	"math"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	// lookedPerPage bounds what one page costs when few jobs match.
	lookedPerPage = 20_000
	// A page is looked for in reads of this many rows, each larger than the last.
	firstRead, largestRead = 128, 4096
)

// The tables of a list, newest job first: job, lane, state and place in line of every row below a bound. They are ordered by
// seq, which is how the places are keyed, but listAll by job id. Both are given at submission and never change, so pages
// neither repeat nor lose a job that stays where it is.
var (
	listAll  = sql("select id, lane, '', seq from job where id < $1::uuid order by id desc limit $2::bigint")
	listHeld = sql("select job, lane, case first_beat_at when 0 then 'leased' else 'running' end, seq from lease" +
		" where seq < $1::bigint order by seq desc limit $2::bigint")
	listDone = sql("select job, lane, state, seq from done where seq < $1::bigint order by seq desc limit $2::bigint")
	listOver = sql("select job, lane, state, seq from delayed where seq < $1::bigint" +
		" union all select job, lane, state, seq from done where seq < $1::bigint order by seq desc limit $2::bigint")
	listQueued = sql("select job, lane, 'queued' as state, seq from queue where seq < $1::bigint" +
		" union all select job, lane, state, seq from delayed where seq < $1::bigint order by seq desc limit $2::bigint")

	seqBehind  = sql("select id, seq from job where id <= $1::uuid order by id desc limit 1")
	readTagsOf = sql("select id, tags from job where id = any($1::uuid[])")
)

// listOf returns the tables that jobs in a state are in.
func listOf(s lessor.State) *statement {
	switch s {
	case lessor.Queued:
		return listQueued
	case lessor.Leased, lessor.Running:
		return listHeld
	case lessor.Completed, lessor.Cancelled:
		return listDone
	case lessor.Failed, lessor.Expired: // for good, or until the retry
		return listOver
	}
	return listAll
}

// List implements scheduler.View. It looks at no more than lookedPerPage jobs.
func (v *view) List(ctx context.Context, q scheduler.ListQuery) (scheduler.ListPage, error) {
	ids, next, err := v.match(ctx, q)
	if err != nil {
		return scheduler.ListPage{}, err
	}
	standings, err := v.Standings(ctx, ids)
	if err != nil {
		return scheduler.ListPage{}, err
	}
	page := scheduler.ListPage{Standings: make([]*rules.Standing, 0, len(ids)), Next: next}
	for _, id := range ids {
		if s := standings[id]; s != nil {
			page.Standings = append(page.Standings, s)
		}
	}
	return page, nil
}

// listed is one job that is looked at.
type listed struct {
	job   lessor.JobID
	lane  rules.LaneID
	state lessor.State
	seq   int64
}

// match returns the ids of one page, and the last job looked at if there are others behind it.
func (v *view) match(ctx context.Context, q scheduler.ListQuery) (ids []lessor.JobID, next *lessor.JobID, err error) {
	stmt := listOf(q.State)
	bound, err := v.bound(stmt, q.After)
	if q.Limit <= 0 || err != nil {
		return nil, nil, err
	}
	lanes := map[rules.LaneID]rules.Lane{}
	looked, size := 0, max(firstRead, min(q.Limit+1, largestRead))
	for {
		size = min(size, lookedPerPage+1-looked)
		batch, err := v.read(stmt, bound, size)
		if err != nil {
			return nil, nil, err
		}
		fits, err := v.filter(ctx, q, batch, lanes)
		if err != nil {
			return nil, nil, err
		}
		for i := range batch {
			if looked == lookedPerPage || len(ids) == q.Limit {
				return ids, next, nil
			}
			looked++
			next = &batch[i].job
			if fits[batch[i].job] {
				ids = append(ids, batch[i].job)
			}
		}
		if len(batch) < size {
			return ids, nil, nil
		}
		bound = int8Of(batch[len(batch)-1].seq)
		if stmt == listAll {
			bound = uuidOf(batch[len(batch)-1].job.UUID)
		}
		size = min(4*size, largestRead)
	}
}

func (v *view) read(stmt *statement, bound []byte, size int) ([]listed, error) {
	batch := make([]listed, 0, size)
	err := v.query("list jobs", stmt, func(r *row) error {
		batch = append(batch, listed{
			job: lessor.JobID{UUID: r.id()}, lane: rules.LaneID(r.int()), state: lessor.State(r.text()), seq: r.int(),
		})
		return nil
	}, bound, int8Of(int64(size)))
	return batch, err
}

// bound returns where a page begins.
func (v *view) bound(stmt *statement, after *lessor.JobID) ([]byte, error) {
	switch {
	case stmt == listAll && after == nil:
		return uuidOf(afterAll), v.err
	case stmt == listAll:
		return uuidOf(after.UUID), v.err
	case after == nil:
		return int8Of(math.MaxInt64), v.err
	}
	seq := int64(0) // there is no older job
	// The job itself, or if it is gone by now the next older one.
	err := v.query("list jobs", seqBehind, func(r *row) error {
		found := lessor.JobID{UUID: r.id()}
		seq = r.int()
		if found != *after {
			seq++
		}
		return nil
	}, uuidOf(after.UUID))
	return int8Of(seq), err
}

// filter returns which of the jobs match.
func (v *view) filter(ctx context.Context, q scheduler.ListQuery, batch []listed, lanes map[rules.LaneID]rules.Lane) (map[lessor.JobID]bool, error) {
	if q.Type != "" || q.Tenant != nil {
		if err := v.meet(ctx, batch, lanes); err != nil {
			return nil, err
		}
	}
	fits := make(map[lessor.JobID]bool, len(batch))
	var ids []lessor.JobID
	for _, l := range batch {
		lane := lanes[l.lane]
		if (q.State == "" || l.state == q.State) && (q.Type == "" || lane.Type == q.Type) && (q.Tenant == nil || lane.Tenant == *q.Tenant) {
			fits[l.job] = true
			ids = append(ids, l.job)
		}
	}
	if q.Tag == "" || len(ids) == 0 {
		return fits, nil
	}
	err := v.query("list jobs", readTagsOf, func(r *row) error {
		id := lessor.JobID{UUID: r.id()}
		tags, err := readTags(r.text())
		fits[id] = slices.Contains(tags, q.Tag)
		return err
	}, idsOf(v, ids))
	return fits, err
}

// meet reads the lanes of the jobs that are not known yet.
func (v *view) meet(ctx context.Context, batch []listed, lanes map[rules.LaneID]rules.Lane) error {
	var unknown []rules.LaneID
	for _, l := range batch {
		if _, ok := lanes[l.lane]; !ok {
			lanes[l.lane] = rules.Lane{}
			unknown = append(unknown, l.lane)
		}
	}
	found, err := v.LanesByID(ctx, unknown)
	maps.Copy(lanes, found)
	return err
}
