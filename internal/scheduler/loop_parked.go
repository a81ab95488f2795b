package scheduler

import (
	"container/heap"
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// maxParked bounds the requests that wait for work.
const maxParked = 20000

// parked are the requests that wait for work. A request was denied when it was last tried, and is tried again when it
// may get a job: a job of its types and tenant became grantable, capacity that it lacked became free, or its worker
// gave a lease back. Requests of one kind are tried in the order in which they came until there is nothing left for any
// of them: the others cost nothing, however many there are.
type parked struct {
	last    uint64
	size    int
	spaces  map[space]map[string]*group   // groups by the tenant whose jobs they may get, and by kind
	workers map[rules.Holder]*requestCall // the requests of each, linked by sibling
	short   map[*group]struct{}           // denied because no unit is free
	behind  map[*group]struct{}           // denied because the job whose turn it is does not fit
	ends    endHeap
	groups  []*group       // of which requests are to be tried
	woken   []*requestCall // that are to be tried for their own sake
	tried   []*requestCall // in this pass
	usable  int            // units when they were last woken
	kept    int64          // the job for which units were reserved then; 0 = none
	sweptAt time.Time

	turned   bool           // another job may be first since those behind were last woken
	turnedAt lessor.Instant // when that was
}

// space says which jobs a request may get: all, or those of one tenant.
type space struct {
	bound  bool
	tenant lessor.TenantID
}

func spaceOf(c Caller) (sp space) {
	if c.Tenant != nil {
		sp = space{true, *c.Tenant}
	}
	return sp
}

func newParked() parked {
	return parked{
		spaces: map[space]map[string]*group{}, workers: map[rules.Holder]*requestCall{}, short: map[*group]struct{}{},
		behind: map[*group]struct{}{},
	}
}

// add parks a request, or takes one back that was parked before.
func (p *parked) add(r *requestCall) {
	if r.number == 0 {
		p.last++
		r.number = p.last
	}
	kinds := p.spaces[spaceOf(r.caller)]
	if kinds == nil {
		kinds = map[string]*group{}
		p.spaces[spaceOf(r.caller)] = kinds
	}
	g := kinds[r.kind]
	if g == nil {
		g = &group{types: slices.Sorted(slices.Values(r.ask.Types))}
		kinds[r.kind] = g
	}
	g.link(r)
	r.sibling = p.workers[r.holder()]
	p.workers[r.holder()] = r
	heap.Push(&p.ends, r)
	p.size++
	r.parked = true
	p.deny(g, r.denial)
}

// remove ends the waiting of a request.
func (p *parked) remove(r *requestCall) {
	g := r.group
	if g.unlink(r); g.first == nil {
		sp := spaceOf(r.caller)
		if delete(p.spaces[sp], r.kind); len(p.spaces[sp]) == 0 {
			delete(p.spaces, sp)
		}
		delete(p.short, g)
		delete(p.behind, g)
	}
	p.removeSibling(r)
	heap.Remove(&p.ends, r.end)
	p.size--
	if r.woken {
		r.woken = false
		p.woken = slices.DeleteFunc(p.woken, func(o *requestCall) bool { return o == r })
	}
	r.parked = false
}

// removeSibling takes a request from those of its worker.
func (p *parked) removeSibling(r *requestCall) {
	first := p.workers[r.holder()]
	if first == r {
		if r.sibling == nil {
			delete(p.workers, r.holder())
		} else {
			p.workers[r.holder()] = r.sibling
		}
	} else {
		for first.sibling != r {
			first = first.sibling
		}
		first.sibling = r.sibling
	}
	r.sibling = nil
}

// deny records why the requests of a group were denied.
func (p *parked) deny(g *group, d *lessor.Denial) {
	g.denial = d
	switch d.Code {
	case lessor.NoCapacity:
		p.short[g] = struct{}{}
	case lessor.NextJobTooLarge:
		p.behind[g] = struct{}{}
	}
}

// each calls fn with every request; fn may remove it.
func (p *parked) each(fn func(*requestCall)) {
	for _, r := range slices.Clone(p.ends) {
		fn(r)
	}
}

// sweepParked is how often all parked requests are checked for clients that have gone.
const sweepParked = time.Second

// over removes the requests whose time is up and those whose caller has gone. It returns the former, and when the next
// one is over.
func (p *parked) over(now lessor.Instant, clock time.Time) (ended []*requestCall, next lessor.Instant) {
	if clock.Sub(p.sweptAt) >= sweepParked {
		p.sweep(clock, nil)
		for _, r := range p.ends {
			r.until = min(r.until, now.Add(r.ask.Wait)) // the clock may have been set back
		}
		heap.Init(&p.ends)
	}
	for len(p.ends) > 0 && p.ends[0].until <= now {
		r := p.ends[0]
		r.denial = r.group.denial
		ended = append(ended, r)
		p.remove(r)
	}
	if len(p.ends) > 0 {
		next = p.ends[0].until
	}
	return ended, next
}

// sweep removes the requests whose caller has gone. If the store fails, it refuses those whose time is up with why.
func (p *parked) sweep(clock time.Time, why error) {
	p.sweptAt = clock
	p.each(func(r *requestCall) {
		switch {
		case r.abandoned():
			p.remove(r)
		case why != nil && !clock.Before(r.ends):
			p.remove(r)
			r.answer(why)
		}
	})
}

// endHeap orders requests by when they are to be answered.
type endHeap []*requestCall

func (h endHeap) Len() int { return len(h) }

func (h endHeap) Less(i, j int) bool { return h[i].until < h[j].until }

func (h endHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].end, h[j].end = i, j
}

// Push adds a request, as container/heap asks.
func (h *endHeap) Push(x any) {
	r := x.(*requestCall) //nolint:errcheck // only add pushes
	r.end = len(*h)
	*h = append(*h, r)
}

// Pop removes the last element, as container/heap asks.
func (h *endHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}

// park returns the requests that a commit deals with: those that got something or wait no longer. The others wait on.
func (l *loop) park(fresh []*requestCall, now lessor.Instant) (dealt []*requestCall) {
	p := &l.parked
	waits := func(r *requestCall) bool {
		return !r.abandoned() && len(r.grants) == 0 && r.until > now && r.denial.Code != lessor.Draining
	}
	for _, r := range p.tried {
		if r.parked && !waits(r) {
			p.remove(r)
			dealt = append(dealt, r)
		}
	}
	p.tried = nil
	for _, r := range fresh {
		dealt = append(dealt, p.replace(r)...)
		if waits(r) && p.size < maxParked {
			p.add(r)
		} else {
			dealt = append(dealt, r)
		}
	}
	return dealt
}
