package sqlite

import (
	"cmp"
	"encoding/hex"
	"math"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

// listPage is a page of a list that is being read.
type listPage struct {
	v     *view
	q     scheduler.ListQuery
	lanes map[rules.LaneID]bool // whether a lane's jobs match
	whole bool                  // lanes has every lane that may match
	ids   []lessor.JobID
	last  lessor.JobID // the last one that was read
	read  int
	more  bool
}

// match returns the ids of one page, and the last job that was read if there are others behind it.
func (v *view) match(q scheduler.ListQuery) (ids []lessor.JobID, next *lessor.JobID, err error) {
	if q.Limit <= 0 {
		return nil, nil, nil
	}
	p := &listPage{v: v, q: q, lanes: map[rules.LaneID]bool{}}
	if err := p.readTenant(); err != nil {
		return nil, nil, err
	}
	text, leases := listOf(q)
	switch {
	case q.Trace != "":
		err = p.readJobs(listTrace, func(a *args) {
			a.Text(q.Trace)
			a.idOrNull(madeFrom(q.Trace))
		})
	case q.Definition != "":
		err = p.readJobs(listDefinition, func(a *args) { a.Text(q.Definition) })
	case text == listAll:
		err = p.readJobs(listAll, func(*args) {})
	default:
		err = p.readPlaces(text, leases)
	}
	if p.more {
		next = &p.last
	}
	return p.ids, next, err
}

// madeFrom returns the id of the job that a trace id may have been made from: the one is the hex of the other.
func madeFrom(trace string) (u lessor.UUID) {
	if b, err := hex.DecodeString(trace); err == nil && len(b) == len(u) {
		copy(u[:], b)
	}
	return u
}

func (p *listPage) readJobs(text string, bind func(*args)) error {
	return query(p.v.conn, text,
		func(a *args) {
			bindBefore(a, p.q.After)
			bind(a)
		},
		func(r *result) error { return p.add(readListed(r)) })
}

// readPlaces reads the rows of tables, and leases, which are merged in.
func (p *listPage) readPlaces(text string, leased bool) error {
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
			err := query(p.v.conn, readLeased, func(a *args) { a.Int(leases[0].n) }, func(r *result) error {
				return p.add(readListed(r))
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	if text != listLeases {
		err = query(p.v.conn, text, func(a *args) { a.Int(seq) }, func(r *result) error {
			l := readListed(r)
			if err := leasesAbove(l.Seq); err != nil || p.more {
				return cmp.Or(err, errEnough)
			}
			return p.add(l)
		})
	}
	if err != nil {
		return err
	}
	return leasesAbove(-1)
}

// add takes one row into the page, if it matches.
func (p *listPage) add(l row.Listed) error {
	// A left-over row and the job's true one are neighbours: no page ends between them.
	if l.Job != p.last && (p.read >= readPerPage || len(p.ids) == p.q.Limit) {
		p.more = true
		return errEnough
	}
	p.read++
	p.last = l.Job
	ok, err := p.matches(&l)
	if ok {
		p.ids = append(p.ids, l.Job)
	}
	return err
}

// matches reports whether a job matches the query. It checks first what is cheap to know.
func (p *listPage) matches(l *row.Listed) (bool, error) {
	if ok, err := p.laneMatches(l.Lane); !ok || err != nil {
		return false, err
	}
	if p.q.State != "" || p.q.Status != "" || p.q.Claimed {
		if ok, err := p.hasState(l); !ok || err != nil {
			return false, err
		}
	}
	if p.q.Tag == "" {
		return true, nil
	}
	return p.v.hasTag(l.Job, p.q.Tag)
}

// hasState reports whether a job has the state and status of the query. A row in the queue may be left over.
func (p *listPage) hasState(l *row.Listed) (bool, error) {
	switch l.Place {
	case rules.InQueue:
		left, err := p.v.isLeft()
		if err != nil || left(l.Seq) {
			return false, err
		}
	case rules.Nowhere:
		p.read += placeCost
		if err := p.v.findListed(l); err != nil {
			return false, err
		}
	}
	return p.q.MatchesPlace(l.Place, l.State, l.Fence), nil
}

// bindBefore binds the upper bound of a list by ids, newest first: the last page's end, or more than any id.
func bindBefore[T ~struct{ lessor.UUID }](a *args, after *T) {
	if after != nil {
		a.ID(lessor.JobID(*after).UUID)
		return
	}
	a.Bytes(afterAll[:])
}

// afterAll is greater than every id: it is longer than the greatest.
var afterAll = [17]byte{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
}

// before returns the seq below which a page begins.
func (v *view) before(after *lessor.JobID) (seq int64, err error) {
	if after == nil {
		return math.MaxInt64, nil
	}
	// The job itself, or the next older one if it was purged; 0 if there is none.
	err = query(v.conn, "select id, seq from job where id <= +? order by id desc limit 1",
		func(a *args) { a.ID(after.UUID) },
		func(r *result) error {
			found := lessor.JobID{UUID: r.ID()}
			seq = r.Int()
			if found != *after {
				seq++
			}
			return nil
		})
	return seq, err
}

// maxTenantLanes bounds the lanes that are read before the jobs of a tenant's page. A tenant that uses many lock keys
// may have as many lanes as jobs.
const maxTenantLanes = 256

// readTenant reads the lanes of the query's tenant, if they are few, so that no lane of another is read for a page.
func (p *listPage) readTenant() error {
	if p.q.Tenant == nil {
		return nil
	}
	n := 0
	err := query(p.v.conn, "select id, "+laneColumns+" from lane where tenant = ? limit +?", func(a *args) {
		a.ID(p.q.Tenant.UUID)
		a.limit(maxTenantLanes + 1)
	}, func(r *result) error {
		id, l := rules.LaneID(r.Int()), rules.Lane{}
		row.Lane(r.codec, &l)
		p.lanes[id] = p.q.MatchesLane(&l)
		n++
		return nil
	})
	p.whole = n <= maxTenantLanes
	return err
}

func (p *listPage) laneMatches(id rules.LaneID) (bool, error) {
	if !p.q.FiltersLanes() {
		return true, nil
	}
	if ok, found := p.lanes[id]; found || p.whole {
		return ok, nil
	}
	l, err := p.v.readLane(id)
	if l == nil || err != nil {
		return false, err
	}
	p.lanes[id] = p.q.MatchesLane(l)
	return p.lanes[id], nil
}

func (v *view) hasTag(id lessor.JobID, tag string) (has bool, err error) {
	err = query(v.conn, "select tags from job where id = ?",
		func(a *args) { a.ID(id.UUID) },
		func(r *result) error {
			tags, err := row.ParseTags(r.Text())
			has = slices.Contains(tags, tag)
			return err
		})
	return has, err
}

// findListed reads the standing of a job.
func (v *view) findListed(l *row.Listed) error {
	s := &rules.Standing{Spec: &rules.Spec{ID: l.Job, Seq: l.Seq}}
	err := v.findPlace(s)
	l.Place, l.State, l.Fence = s.Place, s.State(), s.Turn.Fence
	return err
}

func readListed(r *result) (l row.Listed) {
	row.List(r.codec, &l)
	return l
}
