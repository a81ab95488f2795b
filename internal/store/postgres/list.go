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
	// lookedPerPage bounds what one page costs when few jobs match.
	lookedPerPage = 20_000
	// A page is looked for in reads of this many rows, each larger than the last.
	firstRead, largestRead = 128, 4096
)

var readTagsOf = wire.SQL("select id, tags from job where id = any($1::uuid[])")

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

// match returns the ids of one page, and the last job looked at if there are others behind it.
func (v *view) match(ctx context.Context, q scheduler.ListQuery) (ids []lessor.JobID, next *lessor.JobID, err error) {
	src := sourceOf(q)
	bound, err := v.bound(src, q.After)
	if q.Limit <= 0 || err != nil {
		return nil, nil, err
	}
	lanes := map[rules.LaneID]rules.Lane{}
	looked, size := 0, max(firstRead, min(q.Limit+1, largestRead))
	for {
		size = min(size, lookedPerPage+1-looked)
		batch, err := v.read(src, bound, size)
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
		bound = src.behind(batch[len(batch)-1])
		size = min(4*size, largestRead)
	}
}

// filter returns which of the jobs match.
func (v *view) filter(ctx context.Context, q scheduler.ListQuery, batch []listed, lanes map[rules.LaneID]rules.Lane) (map[lessor.JobID]bool, error) {
	if q.Type != "" || q.Tenant != nil || q.Definition != "" {
		if err := v.meet(ctx, batch, lanes); err != nil {
			return nil, err
		}
	}
	fits := make(map[lessor.JobID]bool, len(batch))
	var ids []lessor.JobID
	for _, l := range batch {
		lane := lanes[l.lane]
		if l.fits(q) && (q.Type == "" || lane.Type == q.Type) && (q.Tenant == nil || lane.Tenant == *q.Tenant) &&
			(q.Definition == "" || lane.Definition == q.Definition) {
			fits[l.job] = true
			ids = append(ids, l.job)
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
