package store

import (
	"iter"
	"maps"
	"math"

	"lessor"
	"lessor/internal/rules"
)

const (
	// specsBytes bounds the specs: about a hundred thousand small jobs.
	specsBytes = 32 << 20
	// specOverhead is the size of a spec besides its payload: the struct, map entry, tags and texts.
	specOverhead = 512
)

// Specs holds the specs of recent jobs, so that a grant soon after the submission reads nothing. The oldest leave it
// first.
type Specs struct {
	max, bytes int
	specs      map[lessor.JobID]*rules.Spec
	order      []lessor.JobID // in the order of submission; may name dropped ones
	floor      int64          // no job with a lower seq is here: with a long queue nearly all are lower
}

// NewSpecs returns an empty cache.
func NewSpecs() *Specs { return newSpecs(specsBytes) }

func newSpecs(limit int) *Specs {
	return &Specs{max: limit, specs: map[lessor.JobID]*rules.Spec{}, floor: math.MaxInt64}
}

// Find returns the spec of a job, nil if it is not at hand.
func (c *Specs) Find(id lessor.JobID) *rules.Spec { return c.specs[id] }

// FindAt is Find for a job whose seq is known, in a store that puts jobs in the order of their seqs.
func (c *Specs) FindAt(t *rules.Turn) *rules.Spec {
	if t.Seq < c.floor {
		return nil
	}
	return c.specs[t.Job]
}

// All returns what is at hand.
func (c *Specs) All() iter.Seq2[lessor.JobID, *rules.Spec] { return maps.All(c.specs) }

// Put adds the spec of a new job. The caller must not change it any more.
func (c *Specs) Put(s *rules.Spec) {
	c.Drop(s.ID)
	c.specs[s.ID] = s
	c.bytes += specSize(s)
	c.floor = min(c.floor, s.Seq)
	c.order = append(c.order, s.ID)
	for c.bytes > c.max {
		if oldest := c.specs[c.order[0]]; oldest != nil {
			c.floor = max(c.floor, oldest.Seq+1) // jobs come in the order of their seqs
			c.Drop(oldest.ID)
		}
		c.order = c.order[1:]
	}
	// Dropped ids are removed from order when they are most of it.
	if len(c.order) > 2*len(c.specs)+1024 {
		c.compact()
	}
}

func (c *Specs) compact() {
	order := make([]lessor.JobID, 0, 2*len(c.specs))
	for _, id := range c.order {
		if c.specs[id] != nil {
			order = append(order, id)
		}
	}
	c.order = order
}

// Drop removes a spec that is no longer needed.
func (c *Specs) Drop(id lessor.JobID) {
	if s := c.specs[id]; s != nil {
		delete(c.specs, id)
		c.bytes -= specSize(s)
	}
}

// Clear removes all.
func (c *Specs) Clear() {
	clear(c.specs)
	c.order, c.bytes, c.floor = nil, 0, math.MaxInt64
}

func specSize(s *rules.Spec) int { return specOverhead + len(s.Payload) }
