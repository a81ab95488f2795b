package sqlite

import (
	"cmp"
	"context"
	"encoding/hex"
	"math"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// lookedPerPage bounds what one page costs when few jobs match.
const lookedPerPage = 20_000

// lookedAround is what finding the place of one job costs, in rows that are only looked at.
const lookedAround = 10

// The tables of a list, newest job first: job, lane, seq, place (as rules.Place numbers them; 0 = not known), state and fence of every
// row below a bound. Those of places are ordered by seq, the others by job id. Both are given at submission and never change,
// so pages neither repeat nor lose a job that stays where it is. No plan may sort: a page reads only what it looks at (TestPlans).
const (
	fromQueue   = "select job, lane, seq, 1, 'queued', fence from queue where seq < +?1"
	fromDelayed = "select job, lane, seq, 2, state, fence from delayed where seq < +?1"
	fromDone    = "select job, lane, seq, 4, state, fence from done where seq < +?1"

	listDone    = fromDone + " order by seq desc"
	listOver    = fromDelayed + " union all " + fromDone + " order by seq desc"
	listWaiting = fromQueue + " union all " + fromDelayed + " order by seq desc"
	listPlaces  = fromQueue + " union all " + fromDelayed + " union all " + fromDone + " order by seq desc"
	listLeases  = "" // which there are is known without the file; readLeased is one of them

	readLeased = "select job, lane, seq, 3, iif(coalesce(first_beat_at, 0) = 0, 'leased', 'running'), fence from " + leaseTables +
		" where lease.n = ?"

	listAll   = "select id, lane, seq, 0, '', 0 from job where id < +?1 order by id desc"
	listTrace = "select id, lane, seq, 0, '', 0 from job where id < +?1 and id = ?3 and trace_id = ?2" +
		" union all select id, lane, seq, 0, '', 0 from job where id < +?1 and trace_id = ?2 and trace_id <> hex(id) collate nocase order by id desc"
	listDefinition = "select definition_job.job, job.lane, job.seq, iif(open, 0, 4), coalesce(state, ''), coalesce(fence, 0)" +
		" from definition_job cross join job on job.id = definition_job.job left join done on done.seq = job.seq" +
		" where definition_job.job < +?1 and definition = ?2 order by definition_job.job desc"
)

// listOf returns the tables of places that a query is about, and whether leases are among them; listAll if it is about all jobs.
func listOf(q scheduler.ListQuery) (text string, leases bool) {
	switch q.State {
	case lessor.Queued:
		return listWaiting, false
	case lessor.Leased, lessor.Running:
		return listLeases, true
	case lessor.Completed, lessor.Cancelled:
		return listDone, false
	case lessor.Failed, lessor.Expired: // for good, or until the retry
		return listOver, false
	}
	switch q.Status {
	case lessor.RunClaimed, lessor.RunRunning:
		return listLeases, true
	case lessor.RunRetrying:
		return listWaiting, false
	case lessor.RunSuccess, lessor.RunFailed:
		return listDone, false
	}
	if q.Claimed {
		return listPlaces, true
	}
	return listAll, false
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
	text, leases := listOf(q)
	switch {
	case q.Trace != "":
		err = p.lookAtJobs(listTrace, func(a *args) {
			a.text(q.Trace)
			a.idOrNull(madeFrom(q.Trace))
		})
	case q.Definition != "":
		err = p.lookAtJobs(listDefinition, func(a *args) { a.text(q.Definition) })
	case text == listAll:
		err = p.lookAtJobs(listAll, func(*args) {})
	default:
		err = p.lookAtPlaces(text, leases)
	}
	if p.more {
		next = &p.last
	}
	return p.ids, next, err
}

// madeFrom returns the id of the job that a trace id may have been made up for: the one is the hex of the other.
func madeFrom(trace string) (u lessor.UUID) {
	if b, err := hex.DecodeString(trace); err == nil && len(b) == len(u) {
		copy(u[:], b)
	}
	return u
}

func (p *page) lookAtJobs(text string, bind func(*args)) error {
	return query(p.v.conn, text,
		func(a *args) {
			bindBefore(a, p.q.After)
			bind(a)
		},
		func(r *row) error { return p.look(readListed(r)) })
}

// lookAtPlaces looks at the rows of tables, and at leases, which are sorted in.
func (p *page) lookAtPlaces(text string, leased bool) error {
	seq, err := p.v.before(p.q.After)
	if err != nil {
		return err
	}
	var leases []endedLease
	if leased {
		leases = p.v.leases.before(seq)
	}
	leasesAbove := func(seq int64) error {
		for ; len(leases) > 0 && leases[0].seq > seq && !p.more; leases = leases[1:] {
			err := query(p.v.conn, readLeased, func(a *args) { a.int(leases[0].n) }, func(r *row) error { return p.look(readListed(r)) })
			if err != nil {
				return err
			}
		}
		return nil
	}
	if text != listLeases {
		err = query(p.v.conn, text, func(a *args) { a.int(seq) }, func(r *row) error {
			l := readListed(r)
			if err := leasesAbove(l.seq); err != nil || p.more {
				return cmp.Or(err, errEnough)
			}
			return p.look(l)
		})
	}
	if err != nil {
		return err
	}
	return leasesAbove(-1)
}

// look takes one row into the page, if it matches.
func (p *page) look(l listed) error {
	// A row that is left over and the job's true one are neighbours, and no page ends between them.
	if l.job != p.last && (p.looked >= lookedPerPage || len(p.ids) == p.q.Limit) {
		p.more = true
		return errEnough
	}
	p.looked++
	p.last = l.job
	ok, err := p.matches(&l)
	if ok {
		p.ids = append(p.ids, l.job)
	}
	return err
}

// matches asks what is cheap to know first.
func (p *page) matches(l *listed) (bool, error) {
	if ok, err := p.v.laneMatches(p.q, l.lane, p.lanes); !ok || err != nil {
		return false, err
	}
	if p.q.State != "" || p.q.Status != "" || p.q.Claimed {
		if ok, err := p.standsRight(l); !ok || err != nil {
			return false, err
		}
	}
	if p.q.Tag == "" {
		return true, nil
	}
	return p.v.hasTag(l.job, p.q.Tag)
}

// standsRight reports whether a job is as the query wants it, and where a row says: one in the queue may be left over.
func (p *page) standsRight(l *listed) (bool, error) {
	switch l.place {
	case rules.InQueue:
		left, err := p.v.isLeft()
		if err != nil || left(l.seq) {
			return false, err
		}
	case rules.Nowhere:
		p.looked += lookedAround
		if err := p.v.findListed(l); err != nil {
			return false, err
		}
	}
	status := l.status()
	return (p.q.State == "" || l.state == p.q.State) && (p.q.Status == "" || status == p.q.Status) && (!p.q.Claimed || status != ""), nil
}

// bindBefore binds the upper bound of a list by ids, newest first: the last page's end, or more than any id.
func bindBefore[T ~struct{ lessor.UUID }](a *args, after *T) {
	if after != nil {
		a.id(lessor.JobID(*after).UUID)
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
	if q.Type == "" && q.Tenant == nil && q.Definition == "" {
		return true, nil
	}
	if ok, found := known[id]; found {
		return ok, nil
	}
	err := query(v.conn, "select "+laneColumns+" from lane where id = ?",
		func(a *args) { a.int(int64(id)) },
		func(r *row) error {
			l := readLane(r)
			known[id] = (q.Type == "" || l.Type == q.Type) && (q.Tenant == nil || l.Tenant == *q.Tenant) &&
				(q.Definition == "" || l.Definition == q.Definition)
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
