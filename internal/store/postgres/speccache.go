package postgres

import (
	"lessor"
	"lessor/internal/rules"
)

const (
	// specCacheBytes bounds the cached specs: about a hundred thousand small jobs.
	specCacheBytes = 32 << 20
	// specOverhead is what a spec costs besides its payload: the struct, map entry, tags and texts.
	specOverhead = 512
)

// specCache holds the specs of recent jobs, so that a grant soon after the submission reads nothing. The oldest go
// first.
type specCache struct {
	max, bytes int
	specs      map[lessor.JobID]*rules.Spec
	order      []lessor.JobID // as they came; ids that were dropped since are skipped
}

func newSpecCache(limit int) *specCache {
	return &specCache{max: limit, specs: map[lessor.JobID]*rules.Spec{}}
}

func (c *specCache) find(id lessor.JobID) *rules.Spec { return c.specs[id] }

func (c *specCache) put(s *rules.Spec) {
	c.drop(s.ID)
	c.specs[s.ID] = s
	c.bytes += specSize(s)
	c.order = append(c.order, s.ID)
	for c.bytes > c.max {
		c.drop(c.order[0])
		c.order = c.order[1:]
	}
	// Dropped ids are removed when they are most of the order.
	if len(c.order) > 2*len(c.specs)+1024 {
		c.compact()
	}
}

func (c *specCache) compact() {
	order := make([]lessor.JobID, 0, 2*len(c.specs))
	for _, id := range c.order {
		if c.specs[id] != nil {
			order = append(order, id)
		}
	}
	c.order = order
}

func (c *specCache) drop(id lessor.JobID) {
	if s := c.specs[id]; s != nil {
		delete(c.specs, id)
		c.bytes -= specSize(s)
	}
}

func specSize(s *rules.Spec) int { return specOverhead + len(s.Payload) }
