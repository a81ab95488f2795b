package lanes

import (
	"lessor"
	"lessor/internal/rules"
)

// Terms is what decides about a request besides the queue and the request's own filter.
type Terms struct {
	Now        lessor.Instant
	NextChange lessor.Instant // when the queue may change by itself; 0 = unknown
	Capacity   lessor.Capacity
	Draining   bool
	Backfill   bool
	Reserved   *Reserved // nil = nothing is reserved
}

// Reserved is a job that has starved: freed units are reserved for it.
type Reserved struct {
	Lane  rules.LaneID
	Seq   int64
	Units int
}

// Choice is what one request gets.
type Choice struct {
	Pick    Pick
	Denial  *lessor.Denial // why it gets nothing; nil = it gets Pick
	Found   bool           // there was a job whose turn it is, whether it fits or not
	Starves bool           // that job does not fit
	First   Pick           // that job, if it starves
}

// Choose is the order of grants (SPEC 3). Everything else in Lessor that hands out jobs calls it. The steps:
//
//  1. Before the first request of a pass, the scheduler ends the leases that have lapsed, queues the jobs that are due,
//     and lets one job go of each definition whose open circuit may be tried.
//  2. While the scheduler is draining, the request is denied.
//  3. Without available units, the request is denied, even if the queue is empty.
//  4. Next chooses the job whose turn it is: strictly by priority; within a priority the tenant, and within the tenant
//     the class, that has had least of its share; then the lowest seq. It skips, and leaves in their places, jobs of
//     other types and tenants than asked for, of tenants and classes that are paused or at their cap, of blocked
//     definitions, whose lock is held, unique jobs if the worker holds a lease, and jobs that need more than the
//     request's max_units or more than is usable now. If none is left, the request is denied.
//  5. Units that are reserved for a starving job are not available to others. If that leaves too little for the job
//     whose turn it is, the starving one is granted before it, if it fits now and the request does not skip it.
//  6. A job that fits into the available units is granted.
//  7. A job that does not fit keeps its place and begins to starve; the request is denied. With backfill, and unless
//     units are reserved, the next job that fits is granted instead.
//  8. Before a lease is made, the scheduler checks the payload against a schema that is newer than the job. A job that
//     breaks it ends, and the request is decided about again.
func (x *Index) Choose(f *Filter, t *Terms) (c Choice) {
	f.Usable = t.Capacity.UsableUnits
	if c.Denial = rules.Admit(t.Capacity, t.Draining); c.Denial != nil { // steps 2 and 3
		return c
	}
	if c.Pick, c.Found = x.Next(f); !c.Found { // step 4
		c.Denial = rules.NoneLeft(t.Now, t.NextChange)
		return c
	}
	available := t.Capacity.AvailableUnits
	if r := t.Reserved; r != nil && c.Pick.Turn.Seq != r.Seq { // step 5
		available -= r.Units
		if starved, ok := x.starved(f, r); ok && available >= 0 && c.Pick.Lane.Units > available {
			c.Pick = starved
			return c
		}
		if available <= 0 {
			c.Denial = rules.Fit(r.Units, min(t.Capacity.AvailableUnits, r.Units-1))
			return c
		}
	}
	if c.Denial = rules.Fit(c.Pick.Lane.Units, available); c.Denial == nil { // step 6
		return c
	}
	c.First, c.Starves = c.Pick, true // step 7
	if t.Backfill && t.Reserved == nil {
		f.Usable = available
		if pick, ok := x.Next(f); ok {
			c.Pick, c.Denial = pick, nil
		}
	}
	return c
}

// starved returns the job for which units are reserved; false if f skips it.
func (x *Index) starved(f *Filter, r *Reserved) (pick Pick, ok bool) {
	l := x.registry.find(r.Lane)
	if l == nil {
		return pick, false
	}
	pick.lane, pick.Turn.Lane, pick.Turn.Seq = l, r.Lane, r.Seq
	l.read(&pick.Lane)
	return pick, f.Takes(&pick.Lane)
}
