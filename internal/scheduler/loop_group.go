package scheduler

import (
	"cmp"
	"container/heap"
	"slices"

	"lessor"
)

// group are the requests of one kind, linked in the order in which they came.
type group struct {
	types       []string // sorted; none = all
	first, last *requestCall
	denial      *lessor.Denial // the last that one of them got
	woken       bool
	next        *requestCall // while woken: the one to be tried next
	again       bool         // while woken: try all once more after this, because something else has happened
}

// link inserts a request in the order of arrival. It goes to the end, unless a failed commit returned it.
func (g *group) link(r *requestCall) {
	r.group, r.prev = g, g.last
	for r.prev != nil && r.prev.number > r.number {
		r.prev = r.prev.prev
	}
	if r.prev == nil {
		r.next, g.first = g.first, r
	} else {
		r.next, r.prev.next = r.prev.next, r
	}
	if r.next == nil {
		g.last = r
	} else {
		r.next.prev = r
	}
}

func (g *group) unlink(r *requestCall) {
	if g.next == r {
		g.next = r.next
	}
	if r.prev == nil {
		g.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		g.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
}

// wants reports whether requests of the group take jobs of a type.
func (g *group) wants(typ string) bool {
	if len(g.types) == 0 {
		return true
	}
	_, ok := slices.BinarySearch(g.types, typ)
	return ok
}

// wake marks the requests of a group to be tried again.
func (p *parked) wake(g *group) {
	if g.woken {
		g.again = g.again || g.next != g.first
		return
	}
	g.woken, g.next = true, g.first
	delete(p.short, g)
	delete(p.behind, g)
	p.groups = append(p.groups, g)
}

// wakeOne marks one request to be tried again, independently of the others of its kind.
func (p *parked) wakeOne(r *requestCall) {
	if !r.woken {
		r.woken = true
		p.woken = append(p.woken, r)
	}
}

// turns returns the woken groups that have a request to try, which it takes from p, and orders the requests that are
// tried for their own sake.
func (p *parked) turns() turnHeap {
	turns := make(turnHeap, 0, len(p.groups))
	for _, g := range p.groups {
		if g.next == nil && g.again {
			g.next, g.again = g.first, false
		}
		if g.next != nil {
			turns = append(turns, g)
			continue
		}
		g.woken = false // its requests have gone
	}
	p.groups = nil
	heap.Init(&turns)
	slices.SortFunc(p.woken, func(a, b *requestCall) int { return cmp.Compare(a.number, b.number) })
	return turns
}

// pick returns the request that came first of those to be tried, nil if there is none, and its group if it is the
// group's turn.
func (p *parked) pick(turns turnHeap) (c *requestCall, g *group) {
	if len(turns) > 0 {
		g = turns[0]
		c = g.next
	}
	if len(p.woken) == 0 || c != nil && c.number < p.woken[0].number {
		return c, g
	}
	if c != p.woken[0] {
		c, g = p.woken[0], nil
	}
	c.woken = false
	p.woken = p.woken[1:]
	return c, g
}

// advance ends the turn of the first group: its next request is to be tried, unless there is none, or the group is
// done. If it is to be tried again, that is in the next pass, because a request is tried once in a pass.
func (p *parked) advance(turns *turnHeap, done bool) {
	g := (*turns)[0]
	if g.next = g.next.next; g.next != nil && !done {
		heap.Fix(turns, 0)
		return
	}
	heap.Pop(turns)
	again := g.again
	g.woken, g.next, g.again = false, nil, false
	if again {
		p.wake(g)
	}
}

// turnHeap orders groups by when the request that is to be tried next came.
type turnHeap []*group

func (h turnHeap) Len() int           { return len(h) }
func (h turnHeap) Less(i, j int) bool { return h[i].next.number < h[j].next.number }
func (h turnHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push adds a group, as container/heap asks.
func (h *turnHeap) Push(x any) { *h = append(*h, x.(*group)) } //nolint:errcheck // only groups are pushed

// Pop removes the last element, as container/heap asks.
func (h *turnHeap) Pop() any {
	last := len(*h) - 1
	g := (*h)[last]
	*h = (*h)[:last]
	return g
}
