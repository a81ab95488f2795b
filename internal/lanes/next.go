package lanes

import (
	"lessor"
	"lessor/internal/rules"
)

// Pick is a job whose turn it is. It is good until the index changes.
type Pick struct {
	Turn rules.Turn
	Lane rules.Lane
	lane *lane
}

// Next returns the job whose turn it is for f, without taking it: of the highest priority that has one, of the tenant
// with the least virtual time, of its class with the least, the one with the lowest seq.
func (x *Index) Next(f *Filter) (pick Pick, ok bool) {
	limit := f.limit()
	for p := range lessor.Priorities {
		if x.ready[p] == 0 {
			continue
		}
		var l *lane
		if f.Tenant == nil {
			l = x.next(f, p, limit)
		} else {
			l = x.nextOf(f, p, limit)
		}
		if l != nil {
			pick.lane = l
			l.line.first().read(&pick.Turn, l.id)
			l.read(&pick.Lane)
			return pick, true
		}
	}
	return pick, false
}

// next looks at the first tenant of each shape. The tenant with the least virtual time of all is the first of every
// shape where it has anything to be granted, so its other stands need no search.
func (x *Index) next(f *Filter, p, limit int) *lane {
	shapes := f.match(x, p)
	var tenant, best *slot
	for _, s := range shapes {
		if s.units <= limit && !(s.unique && f.SkipUnique) {
			if first := x.firstStand(s); first != nil && (tenant == nil || first.before(tenant)) {
				tenant = first
			}
		}
	}
	if tenant == nil {
		return nil
	}
	// A second loop, because its reads of far memory do not wait for each other when nothing else is done in it.
	for _, s := range shapes {
		if len(s.stands) > 0 && s.stands[0].tie == tenant.tie && s.units <= limit && !(s.unique && f.SkipUnique) {
			best = x.better(best, x.firstSeat(x.stands.items[s.stands[0].num]))
		}
	}
	return x.firstLane(best)
}

// nextOf looks at one tenant only.
func (x *Index) nextOf(f *Filter, p, limit int) *lane {
	t := x.tenants[*f.Tenant]
	if t == nil || t.shares[p] == nil || t.shares[p].ready == 0 {
		return nil
	}
	var best *slot
	for _, s := range f.match(x, p) {
		if len(s.stands) == 0 || s.units > limit || s.unique && f.SkipUnique {
			continue
		}
		if st := x.standOf[standKey{t.shares[p], s}]; st != nil && x.stands.in(st.num) {
			best = x.better(best, x.firstSeat(st))
		}
	}
	return x.firstLane(best)
}

// better returns the seat that goes first of two first seats of one tenant's stands. As with tenants, the class with
// the least virtual time is first wherever it has anything; between its own seats the older job decides.
func (x *Index) better(a, b *slot) *slot {
	switch {
	case a == nil || b.before(a):
		return b
	case a.tie == b.tie && x.seats.items[b.num].lanes[0].key < x.seats.items[a.num].lanes[0].key:
		return b
	}
	return a
}

// firstLane returns the lane of a seat with the oldest job, nil without a seat.
func (x *Index) firstLane(seat *slot) *lane {
	if seat == nil {
		return nil
	}
	return x.lanes.items[x.seats.items[seat.num].lanes[0].num]
}
