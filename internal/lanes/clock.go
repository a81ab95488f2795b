package lanes

// clock is the virtual time of members that share something: the tenants at a priority, or the classes of a tenant
// there. V is the start tag of the member that was served last; it is kept over idle times.
type clock struct {
	v      int64
	own    []int64 // when the next grant of each would start
	before int64   // V before the batch that was last charged
	batch  int64   // the number of that batch
}

// BeginBatch is called before the grants of other nodes that one reading showed are taken. They come stream by stream,
// not in the order in which they were made, so none may start later because of another: until EndBatch, V counts as it
// was before the batch.
func (x *Index) BeginBatch() {
	x.batches++
	x.batch = x.batches
}

// EndBatch ends what BeginBatch began.
func (x *Index) EndBatch() { x.batch = 0 }

// scale is virtual time per unit at weight 1. At weight 1,000,000 a unit still costs 1073, so that rounding is under
// 0.1 %.
const scale = 1 << 30

// maxUnits bounds one charge to 2^60, and rebaseAt the times it is added to, so that no sum passes 2^62.
const (
	maxUnits = 1 << 30
	rebaseAt = 1 << 61
)

func cost(units int, p *Policy) int64 {
	full := int64(min(max(units, 1), maxUnits)) * scale
	if p.Weight <= 1 {
		return full
	}
	return max(1, full/int64(p.Weight))
}

// join adds a member and returns its number.
func (c *clock) join() int32 {
	c.own = append(c.own, 0)
	return int32(len(c.own) - 1)
}

// enter is called for a member that can be served again: it gets no credit for the time away.
func (c *clock) enter(num int32, batch int64) { c.own[num] = max(c.own[num], c.earliest(batch)) }

func (c *clock) charge(num int32, cost, batch int64) {
	start := max(c.own[num], c.earliest(batch))
	c.v = max(c.v, start)
	c.own[num] = start + cost
}

// earliest is V, in a batch V before it.
func (c *clock) earliest(batch int64) int64 {
	if batch == 0 {
		return c.v
	}
	if c.batch != batch {
		c.batch, c.before = batch, c.v
	}
	return c.before
}

// rebase moves all times back so that V is zero, once V is large, and returns by how much. That is so after 2^31 units
// at weight 1, so a walk over all members costs a grant nothing. Members far behind V are moved near to it,
// which can only change the order among them.
func (c *clock) rebase() (by int64) {
	if c.v < rebaseAt {
		return 0
	}
	by, c.v, c.before = c.v, 0, c.before-c.v
	for i := range c.own {
		c.own[i] = max(c.own[i]-by, -rebaseAt)
	}
	return by
}
