package lanes

import "lessor"

// share is a tenant's account at one priority, and the clock of its classes.
type share struct {
	tenant   *tenant
	priority lessor.Priority
	num      int32 // at the clock of the priority
	ready    int   // stands in heaps
	stands   []*stand
	classes  clock
}

// classShare is a class's account at one priority.
type classShare struct {
	class *class
	share *share
	num   int32 // at the share's clock
	ready int   // seats in heaps
	seats []*seat
}

// charge makes the tenant and the class of a lane pay for a grant. Their keys in the heaps are not touched: virtual
// time only grows, so an old key is too low, and is put right when it comes up first. So a tenant with thousands of
// shapes pays only for those that are asked for.
func (x *Index) charge(l *lane) {
	c := l.classShare()
	s := c.share
	units := l.shape().units
	tenants := &x.clocks[s.priority]

	tenants.charge(s.num, cost(units, &s.tenant.policy), x.batch)
	if by := tenants.rebase(); by > 0 {
		for _, sh := range x.byPriority[s.priority] {
			sh.stands.lower(x.stands.pos, by, -rebaseAt)
		}
	}
	s.classes.charge(c.num, cost(units, &c.class.policy), x.batch)
	if by := s.classes.rebase(); by > 0 {
		for _, st := range s.stands {
			st.seats.lower(x.seats.pos, by, -rebaseAt)
		}
	}
}

// firstStand returns the tenant of a shape with the least virtual time, nil if there is none.
func (x *Index) firstStand(s *shape) *slot {
	own := x.clocks[s.priority].own
	for len(s.stands) > 0 {
		top := &s.stands[0]
		if top.key == own[top.tie] {
			return top
		}
		s.stands.raise(x.stands.pos, own[top.tie])
	}
	return nil
}

// firstSeat returns the class of a stand with the least virtual time. The stand must be in its shape's heap.
func (x *Index) firstSeat(st *stand) *slot {
	own := st.share.classes.own
	for {
		top := &st.seats[0]
		if top.key == own[top.tie] {
			return top
		}
		st.seats.raise(x.seats.pos, own[top.tie])
	}
}
