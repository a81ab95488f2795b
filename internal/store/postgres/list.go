package postgres

import (
	"context"
	"maps"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

const (
	// readPerPage bounds the cost of a page when few jobs match.
	readPerPage = 20_000
	// A page is collected in reads of this many rows, each larger than the last.
	firstRead, largestRead = 128, 4096
)

var readTagsOf = wire.SQL("select id, tags from job where id = any($1::uuid[])")

// List implements scheduler.View. It reads no more than readPerPage jobs.
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

// match returns the ids of one page, and the last job that was read if there are others behind it.
func (v *view) match(ctx context.Context, q scheduler.ListQuery) (ids []lessor.JobID, next *lessor.JobID, err error) {
	src := sourceOf(q)
	bound, err := v.bound(src, q.After)
	if q.Limit <= 0 || err != nil {
		return nil, nil, err
	}
	lanes := map[rules.LaneID]rules.Lane{}
	seen, size := 0, max(firstRead, min(q.Limit+1, largestRead))
	for {
		size = min(size, readPerPage+1-seen)
		batch, err := v.read(src, bound, size)
		if err != nil {
			return nil, nil, err
		}
		fits, err := v.filter(ctx, q, batch, lanes)
		if err != nil {
			return nil, nil, err
		}
		for i := range batch {
			if seen == readPerPage || len(ids) == q.Limit {
				return ids, next, nil
			}
			seen++
			next = &batch[i].Job
			if fits[batch[i].Job] {
				ids = append(ids, batch[i].Job)
			}
		}
		if len(batch) < size {
			return ids, nil, nil
		}
		bound = src.behind(batch[len(batch)-1])
		size = min(4*size, largestRead)
	}
}

// filter returns the jobs that match.
func (v *view) filter(
	ctx context.Context, q scheduler.ListQuery, batch []row.Listed, lanes map[rules.LaneID]rules.Lane,
) (map[lessor.JobID]bool, error) {
	if q.FiltersLanes() {
		if err := v.learnLanes(ctx, q.Tenant, batch, lanes); err != nil {
			return nil, err
		}
	}
	fits := make(map[lessor.JobID]bool, len(batch))
	var ids []lessor.JobID
	for _, l := range batch {
		lane := lanes[l.Lane]
		if q.MatchesPlace(l.Place, l.State, l.Fence) && q.MatchesLane(&lane) {
			fits[l.Job] = true
			ids = append(ids, l.Job)
		}
	}
	if q.Tag == "" || len(ids) == 0 {
		return fits, nil
	}
	err := v.query("list jobs", readTagsOf, func(r *wire.Row) error {
		id := lessor.JobID{UUID: r.ID()}
		tags, err := row.ParseTags(r.Text())
		fits[id] = slices.Contains(tags, q.Tag)
		return err
	}, wire.IDs(ids))
	return fits, err
}

// learnLanes reads the lanes of jobs that are not known yet. Of a lane that another tenant than the given one is known
// to own, it learns no more than that.
func (v *view) learnLanes(
	ctx context.Context, of *lessor.TenantID, batch []row.Listed, lanes map[rules.LaneID]rules.Lane,
) error {
	var unknown []rules.LaneID
	for _, l := range batch {
		if _, ok := lanes[l.Lane]; ok {
			continue
		}
		o, known := v.store.owners.find(l.Lane)
		lanes[l.Lane] = rules.Lane{Tenant: o.tenant}
		if of == nil || !known || o.tenant == *of {
			unknown = append(unknown, l.Lane)
		}
	}
	found, err := v.LanesByID(ctx, unknown)
	maps.Copy(lanes, found)
	return err
}
