package lanes

import "lessor"

// checkHeaps checks that the heaps contain all that may be granted and nothing else, that they are in order, and that
// no key is above its true value.
func checkHeaps(x *Index, fatal func(string, ...any)) {
	for _, l := range x.lanes.items {
		if l == nil {
			continue
		}
		want := l.line != nil && l.line.n > 0 && !l.lock.held() && !l.definition.stops()
		for i, e := range l.seats {
			if key := checkSlot(e.lanes, x.lanes.pos, l.nums[i], want, "lane", fatal); want &&
				key != l.line.first().seq {
				fatal("lane %d is at %d, its oldest job is %d", l.id, key, l.line.first().seq)
			}
		}
	}
	seats := map[*classShare]int{}
	for _, e := range x.seats.items {
		want := len(e.lanes) > 0 && e.share.class.open()
		key := checkSlot(e.stand.seats, x.seats.pos, e.num, want, "seat", fatal)
		if own := e.share.share.classes.own[e.share.num]; want && key > own {
			fatal("key %d of a seat is above its class's virtual time %d", key, own)
		}
		if want {
			seats[e.share]++
		}
	}
	stands := map[*share]int{}
	var ready [lessor.Priorities]int
	for _, st := range x.stands.items {
		want := len(st.seats) > 0 && st.share.tenant.open()
		key := checkSlot(st.shape.stands, x.stands.pos, st.num, want, "stand", fatal)
		if own := x.clocks[st.share.priority].own[st.share.num]; want && key > own {
			fatal("key %d of a stand is above its tenant's virtual time %d", key, own)
		}
		if want {
			ready[st.share.priority]++
			stands[st.share]++
		}
	}
	if ready != x.ready {
		fatal("ready is %v, want %v", x.ready, ready)
	}
	for _, st := range x.stands.items {
		if st.share.ready != stands[st.share] {
			fatal("a tenant says %d stands are ready, and %d are", st.share.ready, stands[st.share])
		}
	}
	for _, e := range x.seats.items {
		if e.share.ready != seats[e.share] {
			fatal("a class says %d seats are ready, and %d are", e.share.ready, seats[e.share])
		}
	}
}

// checkSlot returns the key of an item, and checks that the item is in the heap exactly if it belongs there.
func checkSlot(h heap, pos []int32, num int32, want bool, what string, fatal func(string, ...any)) int64 {
	i := pos[num]
	switch {
	case !want && i != absent:
		fatal("a %s that may not be granted is in its heap", what)
	case !want:
		return 0
	case i < 0 || int(i) >= len(h) || h[i].num != num:
		fatal("a %s that may be granted is not in its heap (place %d of %d)", what, i, len(h))
	case i > 0 && h[i].before(&h[(i-1)/4]):
		fatal("a heap of %ss is out of order at %d", what, i)
	}
	return h[i].key
}
