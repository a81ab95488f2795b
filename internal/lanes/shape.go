package lanes

import "lessor"

// shape is what a request filters on. Its heap has the tenants that could be granted a job of this shape now. Every
// lane belongs to two: the shape of its type, and the one of any type, for requests that name none, so that these need
// not look at the shapes of thousands of types.
type shape struct {
	shapeKey
	stands heap
}

type shapeKey struct {
	priority lessor.Priority
	anyType  bool
	typ      string // "" for any
	unique   bool
	units    int
}

// stand is a tenant at a shape. Its heap has the classes that are open and have a lane to be granted.
type stand struct {
	share *share
	shape *shape
	seats heap
	num   int32
	noted bool    // among those that opened
	one   [1]slot // most stands have one seat: it is kept here, which saves a cache miss
}

// seat is a class at a stand. Its heap has the lanes to be granted, by their oldest job.
type seat struct {
	stand *stand
	share *classShare
	lanes heap
	num   int32
	one   [1]slot
}

type standKey struct {
	share *share
	shape *shape
}

type seatKey struct {
	stand *stand
	share *classShare
}

// placeTenant puts the stands of a tenant into or out of the heaps, after its policy or its count changed.
func (x *Index) placeTenant(t *tenant) {
	for _, s := range t.shares {
		if s == nil {
			continue
		}
		for _, st := range s.stands {
			x.placeStand(st)
		}
	}
}

// placeClass does the same for the seats of a class.
func (x *Index) placeClass(c *class) {
	for _, s := range c.shares {
		if s == nil {
			continue
		}
		for _, e := range s.seats {
			x.placeSeat(e)
		}
	}
}

func (x *Index) placeSeat(e *seat) {
	c := e.share
	want := len(e.lanes) > 0 && c.class.open()
	switch {
	case want == x.seats.in(e.num):
		return
	case want:
		classes := &c.share.classes
		if c.ready == 0 {
			classes.enter(c.num, x.batch)
		}
		c.ready++
		e.stand.seats.push(x.seats.pos, slot{classes.own[c.num], c.num, e.num})
	default:
		c.ready--
		e.stand.seats.remove(x.seats.pos, e.num)
	}
	x.placeStand(e.stand)
}

func (x *Index) placeStand(st *stand) {
	s := st.share
	want := len(st.seats) > 0 && s.tenant.open()
	switch {
	case want == x.stands.in(st.num):
	case want:
		tenants := &x.clocks[s.priority]
		if s.ready == 0 {
			tenants.enter(s.num, x.batch)
		}
		s.ready++
		x.ready[s.priority]++
		if !st.noted && !st.shape.anyType {
			st.noted = true
			x.opened = append(x.opened, st)
		}
		st.shape.stands.push(x.stands.pos, slot{tenants.own[s.num], s.num, st.num})
	default:
		s.ready--
		x.ready[s.priority]--
		st.shape.stands.remove(x.stands.pos, st.num)
	}
}

// Opened calls fn, if it is not nil, with each tenant and type of which a job may be granted now and might not when
// Opened was called last: one was queued, or what held it back is gone. One more job where others could be granted
// before does not count: a request that was denied those is denied it too, unless capacity or what its worker holds
// has changed, or it was denied because the first of them does not fit. A pair may come more than once.
func (x *Index) Opened(fn func(tenant lessor.TenantID, typ string)) {
	for _, st := range x.opened {
		st.noted = false
		if fn != nil && x.stands.in(st.num) {
			fn(st.share.tenant.id, st.shape.typ)
		}
	}
	clear(x.opened)
	x.opened = x.opened[:0]
}
