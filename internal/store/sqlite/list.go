package sqlite

import (
	"context"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// lookedPerPage bounds what one page costs when few jobs match.
const lookedPerPage = 20_000

// The tables of a list, newest job first: job, lane and state of every row below a bound. They are ordered by seq, which is
// how the places are keyed, but listAll by job id. Both are given at submission and never change, so pages neither
// repeat nor lose a job that stays where it is. No plan may sort: a page reads only what it looks at (TestPlans).
const (
	listAll  = "select id, lane, '' from job where id < +?1 order by id desc"
	listHeld = "select job, lane, iif(first_beat_at = 0, 'leased', 'running') from lease where seq < +?1 order by seq desc"
	listDone = "select job, lane, state from done where seq < +?1 order by seq desc"
	listOver = "select job, lane, state, seq from delayed where seq < +?1" +
		" union all select job, lane, state, seq from done where seq < +?1 order by seq desc"
	listQueued = "select job, lane, 'queued', seq from queue where seq < +?1" +
		" union all select job, lane, state, seq from delayed where seq < +?1 order by seq desc"
)

// listOf returns the tables that jobs in a state are in.
func listOf(s lessor.State) string {
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

// match returns the ids of one page, and the last job looked at if there are others behind it.
func (v *view) match(q scheduler.ListQuery) (ids []lessor.JobID, next *lessor.JobID, err error) {
	text := listOf(q.State)
	bind, err := v.bound(text, q.After)
	if q.Limit <= 0 || err != nil {
		return nil, nil, err
	}
	lanes := map[rules.LaneID]bool{} // whether a lane's jobs match
	var last lessor.JobID
	looked := 0
	err = query(v.conn, text, bind, func(r *row) error {
		if looked == lookedPerPage || len(ids) == q.Limit {
			next = &last
			return errEnough
		}
		looked++
		last = lessor.JobID{UUID: r.id()}
		lane := rules.LaneID(r.int())
		if state := lessor.State(r.text()); q.State != "" && state != q.State {
			return nil
		}
		ok, err := v.laneMatches(q, lane, lanes)
		if ok && q.Tag != "" && err == nil {
			ok, err = v.hasTag(last, q.Tag)
		}
		if ok {
			ids = append(ids, last)
		}
		return err
	})
	return ids, next, err
}

// bound binds where a page begins.
func (v *view) bound(text string, after *lessor.JobID) (func(*args), error) {
	if text == listAll {
		if after == nil {
			return func(a *args) { a.blob(afterAll[:]) }, nil
		}
		return func(a *args) { a.id(after.UUID) }, nil
	}
	const afterAllSeqs = 1<<63 - 1
	seq := int64(afterAllSeqs)
	if after == nil {
		return func(a *args) { a.int(seq) }, nil
	}
	// The job itself, or if it is gone by now the next older one.
	err := query(v.conn, "select id, seq from job where id <= +? order by id desc limit 1",
		func(a *args) { a.id(after.UUID) },
		func(r *row) error {
			found := lessor.JobID{UUID: r.id()}
			seq = r.int()
			if found != *after {
				seq++
			}
			return nil
		})
	if seq == afterAllSeqs {
		seq = 0 // there is no older job
	}
	return func(a *args) { a.int(seq) }, err
}

func (v *view) laneMatches(q scheduler.ListQuery, id rules.LaneID, known map[rules.LaneID]bool) (bool, error) {
	if q.Type == "" && q.Tenant == nil {
		return true, nil
	}
	if ok, found := known[id]; found {
		return ok, nil
	}
	err := query(v.conn, "select "+laneColumns+" from lane where id = ?",
		func(a *args) { a.int(int64(id)) },
		func(r *row) error {
			l := readLane(r)
			known[id] = (q.Type == "" || l.Type == q.Type) && (q.Tenant == nil || l.Tenant == *q.Tenant)
			return nil
		})
	return known[id], err
}

func (v *view) hasTag(id lessor.JobID, tag string) (has bool, err error) {
	err = query(v.conn, "select tags from job where id = ?",
		func(a *args) { a.id(id.UUID) },
		func(r *row) error {
			tags, err := readTags(r.text())
			has = slices.Contains(tags, tag)
			return err
		})
	return has, err
}
