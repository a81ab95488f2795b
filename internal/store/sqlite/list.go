package sqlite

import (
	"context"
	"math"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// lookedPerPage bounds what one page costs when few jobs match.
const lookedPerPage = 20_000

// The tables of a list, newest job first: job, lane, state and seq of every row below a bound. They are ordered by seq, but
// listAll by job id. Both are given at submission and never change, so pages neither repeat nor lose a job that stays
// where it is. No plan may sort: a page reads only what it looks at (TestPlans).
const (
	listAll  = "select id, lane, '', seq from job where id < +?1 order by id desc"
	listDone = "select job, lane, state, seq from done where seq < +?1 order by seq desc"
	listOver = "select job, lane, state, seq from delayed where seq < +?1" +
		" union all select job, lane, state, seq from done where seq < +?1 order by seq desc"
	listQueued = "select job, lane, '" + inQueue + "', seq from queue where seq < +?1" +
		" union all select job, lane, state, seq from delayed where seq < +?1 order by seq desc"

	// inQueue marks the rows of the queue, some of which are left over.
	inQueue = "in queue"

	// readListed is the same of one lease: which there are is known without the file.
	readListed = "select job, lane, iif(coalesce(first_beat_at, 0) = 0, 'leased', 'running'), seq from " + leaseTables +
		" where lease.n = ?"
)

// listOf returns the tables that jobs in a state are in, "" for leases.
func listOf(s lessor.State) string {
	switch s {
	case lessor.Queued:
		return listQueued
	case lessor.Leased, lessor.Running:
		return ""
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

// page is one page of a list in the making.
type page struct {
	v      *view
	q      scheduler.ListQuery
	lanes  map[rules.LaneID]bool // whether a lane's jobs match
	left   func(seq int64) bool
	ids    []lessor.JobID
	last   lessor.JobID // that was looked at
	looked int
	more   bool
}

// match returns the ids of one page, and the last job looked at if there are others behind it.
func (v *view) match(q scheduler.ListQuery) (ids []lessor.JobID, next *lessor.JobID, err error) {
	if q.Limit <= 0 {
		return nil, nil, nil
	}
	p := &page{v: v, q: q, lanes: map[rules.LaneID]bool{}}
	switch text := listOf(q.State); text {
	case "":
		err = p.lookAtLeases()
	case listAll:
		err = query(v.conn, text, func(a *args) { bindBefore(a, q.After) }, p.look)
	default:
		err = p.lookAtRows(text)
	}
	if p.more {
		next = &p.last
	}
	return p.ids, next, err
}

func (p *page) lookAtRows(text string) error {
	seq, err := p.v.before(p.q.After)
	if err != nil {
		return err
	}
	if text == listQueued {
		if p.left, err = p.v.isLeft(); err != nil {
			return err
		}
	}
	return query(p.v.conn, text, func(a *args) { a.int(seq) }, p.look)
}

func (p *page) lookAtLeases() error {
	seq, err := p.v.before(p.q.After)
	if err != nil {
		return err
	}
	for _, l := range p.v.leases.before(seq) {
		err := query(p.v.conn, readListed, func(a *args) { a.int(l.n) }, p.look)
		if err != nil || p.more {
			return err
		}
	}
	return nil
}

// look takes one row into the page, if it matches.
func (p *page) look(r *row) error {
	if p.looked == lookedPerPage || len(p.ids) == p.q.Limit {
		p.more = true
		return errEnough
	}
	p.looked++
	p.last = lessor.JobID{UUID: r.id()}
	lane, state := rules.LaneID(r.int()), r.text()
	if state == inQueue {
		if p.left(r.int()) {
			return nil
		}
		state = string(lessor.Queued)
	}
	if p.q.State != "" && lessor.State(state) != p.q.State {
		return nil
	}
	ok, err := p.v.laneMatches(p.q, lane, p.lanes)
	if ok && p.q.Tag != "" && err == nil {
		ok, err = p.v.hasTag(p.last, p.q.Tag)
	}
	if ok {
		p.ids = append(p.ids, p.last)
	}
	return err
}

// bindBefore binds the upper bound of a list of all jobs: the last page's end, or more than any id.
func bindBefore(a *args, after *lessor.JobID) {
	if after != nil {
		a.id(after.UUID)
		return
	}
	a.blob(afterAll[:])
}

// afterAll is larger than every id, being longer than the largest.
var afterAll = [17]byte{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
}

// before returns the seq below which a page begins.
func (v *view) before(after *lessor.JobID) (seq int64, err error) {
	if after == nil {
		return math.MaxInt64, nil
	}
	// The job itself, or if it is gone by now the next older one; 0 if there is none.
	err = query(v.conn, "select id, seq from job where id <= +? order by id desc limit 1",
		func(a *args) { a.id(after.UUID) },
		func(r *row) error {
			found := lessor.JobID{UUID: r.id()}
			seq = r.int()
			if found != *after {
				seq++
			}
			return nil
		})
	return seq, err
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
