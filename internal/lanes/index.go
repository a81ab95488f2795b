package lanes

import (
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// Index is the order of turns. The zero value is not usable; see New.
type Index struct {
	tenantPolicy func(lessor.TenantID) Policy

	registry    registry
	tenants     map[lessor.TenantID]*tenant
	classes     map[named]*class
	locks       map[named]*lock
	definitions map[named]*definition
	standOf     map[standKey]*stand
	seatOf      map[seatKey]*seat

	lanes  roster[lane]
	stands roster[stand]
	seats  roster[seat]

	shapes     map[shapeKey]*shape
	unique     bool                        // a shape is
	byPriority [lessor.Priorities][]*shape // all of them
	anyType    [lessor.Priorities][]*shape
	byType     map[string]*[lessor.Priorities][]*shape

	clocks [lessor.Priorities]clock // of tenants
	ready  [lessor.Priorities]int   // stands in heaps
	opened []*stand                 // that got into a heap since Opened was called, of types only

	batch, batches int64 // the batch at work (0 = none), and how many there were

	depth  [lessor.Priorities]int
	leases int
	units  int

	spare []*line // of lanes that became empty
}

// New returns an empty index. tenantPolicy gives the policy of a tenant that was not seen before; nil means that all
// have the zero Policy. Classes have the zero Policy until SetClass.
func New(tenantPolicy func(lessor.TenantID) Policy) *Index {
	if tenantPolicy == nil {
		tenantPolicy = func(lessor.TenantID) Policy { return Policy{} }
	}
	return &Index{
		tenantPolicy: tenantPolicy,
		tenants:      map[lessor.TenantID]*tenant{},
		classes:      map[named]*class{},
		locks:        map[named]*lock{},
		definitions:  map[named]*definition{},
		standOf:      map[standKey]*stand{},
		seatOf:       map[seatKey]*seat{},
		shapes:       map[shapeKey]*shape{},
		byType:       map[string]*[lessor.Priorities][]*shape{},
	}
}

// Add registers a lane. Adding a known one does nothing, nor does adding one with an unknown priority.
func (x *Index) Add(id rules.LaneID, v rules.Lane) {
	if x.Known(id) || int(v.Priority) >= lessor.Priorities {
		return
	}
	t := x.tenant(v.Tenant)
	s := x.share(t, v.Priority)
	c := x.classShare(s, x.class(t, v.Class))
	l := &lane{id: id}
	for i, k := range [2]shapeKey{
		{priority: v.Priority, typ: v.Type, unique: v.Unique, units: v.Units},
		{priority: v.Priority, anyType: true, unique: v.Unique, units: v.Units},
	} {
		l.seats[i] = x.seat(x.stand(s, x.shape(k)), c)
		l.nums[i] = x.lanes.add(l)
	}
	if v.LockKey != "" {
		l.lock = x.lock(t, v.LockKey)
		l.lock.lanes = append(l.lock.lanes, l)
	}
	if v.Definition != "" {
		l.definition = x.definition(t, v.Definition)
		l.definition.lanes = append(l.definition.lanes, l)
	}
	x.registry.put(id, l)
}

// Drop forgets a lane and its lock key, if nothing is queued in it. No lease of it may live. What it shares with others
// by its tenant, class and type stays until the index is made anew.
func (x *Index) Drop(id rules.LaneID) {
	l := x.registry.find(id)
	if l == nil || l.line != nil {
		return
	}
	for _, num := range l.nums {
		x.lanes.drop(num)
	}
	is := func(o *lane) bool { return o == l }
	if k := l.lock; k != nil {
		if k.lanes = slices.DeleteFunc(k.lanes, is); len(k.lanes) == 0 && k.holders == 0 {
			delete(x.locks, named{l.classShare().share.tenant, k.key})
		}
	}
	if d := l.definition; d != nil {
		d.lanes = slices.DeleteFunc(d.lanes, is)
	}
	x.registry.drop(id)
}

// Known reports whether a lane was added.
func (x *Index) Known(id rules.LaneID) bool { return x.registry.find(id) != nil }

// Lane returns what a lane is; the zero Lane if it is not known.
func (x *Index) Lane(id rules.LaneID) (v rules.Lane) {
	if l := x.registry.find(id); l != nil {
		l.read(&v)
	}
	return v
}

// HasUnique reports whether there may be unique jobs.
func (x *Index) HasUnique() bool { return x.unique }

func (x *Index) share(t *tenant, p lessor.Priority) *share {
	if t.shares[p] == nil {
		t.shares[p] = &share{tenant: t, priority: p, num: x.clocks[p].join()}
	}
	return t.shares[p]
}

func (x *Index) classShare(s *share, c *class) *classShare {
	if c.shares[s.priority] == nil {
		c.shares[s.priority] = &classShare{class: c, share: s, num: s.classes.join()}
	}
	return c.shares[s.priority]
}

func (x *Index) shape(k shapeKey) *shape {
	s := x.shapes[k]
	if s == nil {
		s = &shape{shapeKey: k}
		x.shapes[k] = s
		x.unique = x.unique || k.unique
		x.byPriority[k.priority] = append(x.byPriority[k.priority], s)
		of := &x.anyType
		if !k.anyType {
			if of = x.byType[k.typ]; of == nil {
				of = new([lessor.Priorities][]*shape)
				x.byType[k.typ] = of
			}
		}
		of[k.priority] = append(of[k.priority], s)
	}
	return s
}

func (x *Index) stand(s *share, sh *shape) *stand {
	st := x.standOf[standKey{s, sh}]
	if st == nil {
		st = &stand{share: s, shape: sh}
		st.num = x.stands.add(st)
		st.seats = st.one[:0]
		x.standOf[standKey{s, sh}] = st
		s.stands = append(s.stands, st)
	}
	return st
}

func (x *Index) seat(st *stand, c *classShare) *seat {
	e := x.seatOf[seatKey{st, c}]
	if e == nil {
		e = &seat{stand: st, share: c}
		e.num = x.seats.add(e)
		e.lanes = e.one[:0]
		x.seatOf[seatKey{st, c}] = e
		c.seats = append(c.seats, e)
	}
	return e
}
