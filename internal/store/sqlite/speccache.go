package sqlite

import (
	"math"

	"lessor"
	"lessor/internal/rules"
)

const (
	// specCacheBytes bounds the cache: about a hundred thousand small jobs.
	specCacheBytes = 32 << 20
	// specOverhead is the size of a spec besides its payload: the struct, map entry, tags and texts.
	specOverhead = 512
)

// specCache holds the specs of recent jobs, so that a grant soon after the submission reads nothing. The oldest leave
// it first.
type specCache struct {
	max, bytes int
	specs      map[lessor.JobID]*rules.Spec
	order      []lessor.JobID // in the order of submission; may name dropped ones
	floor      int64          // no job with a lower seq is here: with a long queue nearly all are lower
}

func newSpecCache(limit int) *specCache {
	return &specCache{max: limit, specs: map[lessor.JobID]*rules.Spec{}, floor: math.MaxInt64}
}

func (c *specCache) find(id lessor.JobID) *rules.Spec { return c.specs[id] }

// findAt is find for a job whose seq is known.
func (c *specCache) findAt(t *rules.Turn) *rules.Spec {
	if t.Seq < c.floor {
		return nil
	}
	return c.specs[t.Job]
}

func (c *specCache) put(s *rules.Spec) {
	c.drop(s.ID)
	c.specs[s.ID] = s
	c.bytes += specSize(s)
	c.order = append(c.order, s.ID)
	c.floor = min(c.floor, s.Seq)
	for c.bytes > c.max {
		if oldest := c.specs[c.order[0]]; oldest != nil {
			c.floor = max(c.floor, oldest.Seq+1) // jobs come in the order of their seqs
			c.drop(oldest.ID)
		}
		c.order = c.order[1:]
	}
	// Dropped ids are removed from order when they are most of it.
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

func (c *specCache) clear() {
	clear(c.specs)
	c.order, c.bytes, c.floor = nil, 0, math.MaxInt64
}

func specSize(s *rules.Spec) int { return specOverhead + len(s.Payload) }
