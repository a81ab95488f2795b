package lanes

import (
	"lessor/internal/rules"
)

// lane is a rules.Lane and its queued jobs. There is one for each lock key, so an idle one is kept small: what it
// shares with others is behind pointers, and its line is nil.
type lane struct {
	id         rules.LaneID
	seats      [2]*seat    // of its type, and of any
	nums       [2]int32    // its number in the roster for each
	lock       *lock       // nil without a lock key
	definition *definition // nil for a plain job
	line       *line       // nil when nothing is queued
}

// lock is a lock key of a tenant. Its holders are a count and not a flag: the end of another node's lease may arrive
// before its grant.
type lock struct {
	key     string
	holders int
	lanes   []*lane
}

func (k *lock) held() bool { return k != nil && k.holders > 0 }

// definition is what some jobs were made from.
type definition struct {
	name    string
	blocked bool
	lanes   []*lane
}

func (d *definition) stops() bool { return d != nil && d.blocked }

func (l *lane) shape() *shape { return l.seats[0].stand.shape }

func (l *lane) classShare() *classShare { return l.seats[0].share }

// read writes what the lane is to v, as entry.read does. v must be zero.
func (l *lane) read(v *rules.Lane) {
	shape, class := l.shape(), l.classShare()
	v.Tenant = class.share.tenant.id
	v.Class = class.class.name
	v.Priority = shape.priority
	v.Type = shape.typ
	v.Unique = shape.unique
	v.Units = shape.units
	if l.lock != nil {
		v.LockKey = l.lock.key
	}
	if l.definition != nil {
		v.Definition = l.definition.name
	}
}

// placeLane puts a lane into or out of its seats' heaps, or to where its oldest job belongs.
func (x *Index) placeLane(l *lane) {
	want := l.line != nil && !l.lock.held() && !l.definition.stops()
	for i, e := range l.seats {
		num := l.nums[i]
		switch {
		case want && x.lanes.in(num):
			e.lanes.rekey(x.lanes.pos, num, l.line.first().seq)
		case want:
			e.lanes.push(x.lanes.pos, slot{key: l.line.first().seq, num: num})
			x.placeSeat(e)
		case x.lanes.in(num):
			e.lanes.remove(x.lanes.pos, num)
			x.placeSeat(e)
		}
	}
}

// Blocks says what keeps the jobs of a lane from being granted to anybody. More than one may hold.
type Blocks struct {
	TenantPaused  bool
	TenantAtCap   bool
	TenantRunning int
	TenantCap     int // 0 = none

	ClassPaused  bool
	ClassAtCap   bool
	ClassRunning int
	ClassCap     int // 0 = none

	LockHeld          bool
	DefinitionBlocked bool
}

// Any reports whether anything does.
func (b Blocks) Any() bool {
	return b.TenantPaused || b.TenantAtCap || b.ClassPaused || b.ClassAtCap || b.LockHeld || b.DefinitionBlocked
}

// Blocked says what holds a lane back; nothing if it is not known.
func (x *Index) Blocked(id rules.LaneID) Blocks {
	l := x.registry.find(id)
	if l == nil {
		return Blocks{}
	}
	c, t := l.classShare().class, l.classShare().share.tenant
	return Blocks{
		TenantPaused:      t.policy.Paused,
		TenantAtCap:       t.policy.full(t.running),
		TenantRunning:     t.running,
		TenantCap:         t.policy.Cap,
		ClassPaused:       c.policy.Paused,
		ClassAtCap:        c.policy.full(c.running),
		ClassRunning:      c.running,
		ClassCap:          c.policy.Cap,
		LockHeld:          l.lock.held(),
		DefinitionBlocked: l.definition.stops(),
	}
}

// Eligible reports whether a job is still queued and nothing but a request's own filter could skip it.
func (x *Index) Eligible(id rules.LaneID, seq int64) bool {
	_, queued := x.Place(id, seq)
	return queued && !x.Blocked(id).Any()
}

// Place returns a queued job's place in its own lane, the first being 1; false when it is not queued there.
func (x *Index) Place(id rules.LaneID, seq int64) (int, bool) {
	l := x.registry.find(id)
	if l == nil || l.line == nil {
		return 0, false
	}
	return l.line.place(seq)
}
