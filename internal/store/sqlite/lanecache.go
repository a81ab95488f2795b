package sqlite

import "lessor/internal/rules"

// maxLanes bounds the lanes known without a read, about 40 MB. Every lock key has lanes of its own, so there may be as
// many as jobs.
const maxLanes = 100_000

// laneCache holds the lanes that were met lately, by what they are and by their numbers.
type laneCache struct {
	ids   map[rules.Lane]rules.LaneID
	lanes map[rules.LaneID]*rules.Lane
}

func newLaneCache() *laneCache {
	return &laneCache{ids: map[rules.Lane]rules.LaneID{}, lanes: map[rules.LaneID]*rules.Lane{}}
}

func (c *laneCache) put(id rules.LaneID, l rules.Lane) {
	if len(c.ids) >= maxLanes {
		c.clear()
	}
	c.ids[l], c.lanes[id] = id, &l
}

func (c *laneCache) clear() {
	clear(c.ids)
	clear(c.lanes)
}
