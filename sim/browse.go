package main

import (
	"context"

	"lessor"
)

// mostListed bounds what a reader reads of a list.
const mostListed = 300

// pages reads a list in small pages, and reports whether it came to the end. No entry may be in two of them.
func pages[T comparable](
	c *client, verb string, read func(ctx context.Context, n *node, cursor string) ([]T, string, error),
) (all []T, whole bool) {
	type page struct {
		list []T
		next string
	}
	seen, sent := map[T]bool{}, c.world.now
	for p := (page{}); len(all) < mostListed; {
		cursor := p.next
		var err error
		p, err = call(c, verb, func(ctx context.Context, n *node) (page, error) {
			list, next, err := read(ctx, n, cursor)
			return page{list, next}, err
		})
		if err != nil {
			return nil, false
		}
		for _, one := range p.list {
			if seen[one] && !c.world.known.stale(sent) {
				c.world.fail("lists", "%v is in two pages of %s", one, verb)
			}
			seen[one] = true
			all = append(all, one)
		}
		if p.next == "" {
			return all, !c.world.known.stale(sent)
		}
	}
	return all, false
}

// names returns what a field of each is.
func names[T any, N comparable](list []T, next string, err error, name func(*T) N) ([]N, string, error) {
	all := make([]N, len(list))
	for i := range list {
		all[i] = name(&list[i])
	}
	return all, next, err
}

// browse reads a list from its first page to its last.
func (p *person) browse() {
	b, sent := p.world.known, p.world.now
	var of *lessor.TenantID
	if p.chance(50) {
		of = new(tenant(p.random.IntN(p.world.plan.Tenants + 1)))
	}
	known := map[lessor.JobID]bool{}
	for id, j := range b.jobs {
		known[id] = !j.lost && j.knownAt < sent
	}
	read := func(ctx context.Context, n *node, at string) ([]lessor.JobID, string, error) {
		list, next, err := n.Jobs(ctx, p.caller, lessor.JobFilter{Tenant: of, Limit: 25, Cursor: at})
		return names(list, next, err, func(j *lessor.Job) lessor.JobID { return j.ID })
	}
	all, whole := pages(p.client, "jobs", read)
	for _, id := range all {
		delete(known, id)
	}
	for id, should := range known {
		if j := b.jobs[id]; whole && should && of == nil && !j.lost && b.config.Retention.Jobs == 0 {
			p.world.fail("lists", "job %v is in no page", id)
		}
	}
}
