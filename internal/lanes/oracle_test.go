package lanes

import (
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// oracle answers as an Index should. It looks at every job, and keeps its own accounts.
type oracle struct {
	lanes   map[rules.LaneID]rules.Lane
	queued  []rules.Turn
	held    []rules.Turn
	seen    []account // in the order they were added
	policy  map[lessor.TenantID]Policy
	class   map[Owned]Policy
	blocked map[Owned]bool

	v        [lessor.Priorities]int64
	own      map[account]int64
	classV   map[account]int64
	classOwn map[account]int64
	waiting  map[account]bool // had something to be granted after the last step
}

// account is a tenant or, with a class, a class of it at a priority.
type account struct {
	Owned
	class    bool
	priority lessor.Priority
}

func newOracle() *oracle {
	return &oracle{
		lanes: map[rules.LaneID]rules.Lane{}, policy: map[lessor.TenantID]Policy{}, class: map[Owned]Policy{},
		blocked: map[Owned]bool{}, own: map[account]int64{}, classV: map[account]int64{}, classOwn: map[account]int64{},
		waiting: map[account]bool{},
	}
}

func tenantAccount(l rules.Lane) account {
	return account{Owned{l.Tenant, ""}, false, l.Priority}
}

func classAccount(l rules.Lane) account {
	return account{Owned{l.Tenant, l.Class}, true, l.Priority}
}

// add registers a lane.
func (o *oracle) add(id rules.LaneID, l rules.Lane) {
	o.lanes[id] = l
	for _, a := range []account{tenantAccount(l), classAccount(l)} {
		if !slices.Contains(o.seen, a) {
			o.seen = append(o.seen, a)
		}
	}
}

// blocks returns what holds a lane back, computed from the rows alone.
func (o *oracle) blocks(l rules.Lane, c *Counts) Blocks {
	tp, cp := o.policy[l.Tenant], o.class[Owned{l.Tenant, l.Class}]
	b := Blocks{
		TenantPaused: tp.Paused, TenantCap: tp.Cap, TenantRunning: c.Tenants[l.Tenant],
		ClassPaused: cp.Paused, ClassCap: cp.Cap, ClassRunning: c.Classes[Owned{l.Tenant, l.Class}],
		LockHeld:          l.LockKey != "" && c.Locks[Owned{l.Tenant, l.LockKey}] > 0,
		DefinitionBlocked: l.Definition != "" && o.blocked[Owned{l.Tenant, l.Definition}],
	}
	b.TenantAtCap = tp.Cap != 0 && b.TenantRunning >= tp.Cap
	b.ClassAtCap = cp.Cap != 0 && b.ClassRunning >= cp.Cap
	return b
}

// settle notes which accounts have something to be granted; one that had nothing before starts at V at least. Whether
// the tenant is held back does not matter to its classes: while it is, none of them is served.
func (o *oracle) settle() {
	now := map[account]bool{}
	c := o.counts()
	for _, t := range o.queued {
		l := o.lanes[t.Lane]
		b := o.blocks(l, &c)
		if !b.Any() {
			now[tenantAccount(l)] = true
		}
		b.TenantPaused, b.TenantAtCap = false, false
		if !b.Any() {
			now[classAccount(l)] = true
		}
	}
	for a := range now {
		switch {
		case o.waiting[a]:
		case a.class:
			o.classOwn[a] = max(o.classOwn[a], o.classV[account{Owned{a.Tenant, ""}, false, a.priority}])
		default:
			o.own[a] = max(o.own[a], o.v[a.priority])
		}
	}
	o.waiting = now
}

func (f *Filter) passes(l rules.Lane) bool {
	return (len(f.Types) == 0 || slices.Contains(f.Types, l.Type)) &&
		(f.MaxUnits == 0 || l.Units <= f.MaxUnits) && l.Units <= f.Usable &&
		!(f.SkipUnique && l.Unique) && (f.Tenant == nil || *f.Tenant == l.Tenant)
}

func (o *oracle) next(f *Filter) (best rules.Turn, ok bool) {
	var least [6]int64
	c := o.counts()
	for _, t := range o.queued {
		l := o.lanes[t.Lane]
		if !f.passes(l) || o.blocks(l, &c).Any() {
			continue
		}
		rank := [6]int64{
			int64(l.Priority),
			o.own[tenantAccount(l)], int64(slices.Index(o.seen, tenantAccount(l))),
			o.classOwn[classAccount(l)], int64(slices.Index(o.seen, classAccount(l))),
			t.Seq,
		}
		if !ok || slices.Compare(rank[:], least[:]) < 0 {
			best, least, ok = t, rank, true
		}
	}
	return best, ok
}

func (o *oracle) take(t rules.Turn) {
	o.queued = slices.DeleteFunc(o.queued, func(q rules.Turn) bool { return q == t })
	o.held = append(o.held, t)
	l := o.lanes[t.Lane]
	pay := func(own, v *int64, p Policy) {
		*v = max(*own, *v)
		*own = *v + int64(l.Units)*(1<<30)/int64(max(1, p.Weight))
	}
	a, c := tenantAccount(l), classAccount(l)
	own, v, classOwn, classV := o.own[a], o.v[l.Priority], o.classOwn[c], o.classV[a]
	pay(&own, &v, o.policy[l.Tenant])
	pay(&classOwn, &classV, o.class[Owned{l.Tenant, l.Class}])
	o.own[a], o.v[l.Priority], o.classOwn[c], o.classV[a] = own, v, classOwn, classV
}

func (o *oracle) counts() Counts {
	c := Counts{
		Leases: len(o.held), Lanes: map[rules.LaneID]int{}, Tenants: map[lessor.TenantID]int{},
		Classes: map[Owned]int{}, Locks: map[Owned]int{},
	}
	for _, t := range o.queued {
		c.Depth[o.lanes[t.Lane].Priority]++
		c.Lanes[t.Lane]++
	}
	for _, t := range o.held {
		l := o.lanes[t.Lane]
		c.Units += l.Units
		c.Tenants[l.Tenant]++
		c.Classes[Owned{l.Tenant, l.Class}]++
		if l.LockKey != "" {
			c.Locks[Owned{l.Tenant, l.LockKey}]++
		}
	}
	return c
}
