package scheduler

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"lessor"
	"lessor/internal/lanes"
	"lessor/internal/rules"
)

// requestCall is a worker's request for leases. It may be parked: kept over many commits until there is a job for it or
// its time is up.
type requestCall struct {
	call
	ctx    context.Context
	caller Caller
	ask    rules.Ask
	filter lanes.Filter
	kind   string         // requests with equal filters have equal kinds
	until  lessor.Instant // answer at the latest then; 0 = not yet set
	ends   time.Time      // the same on the clock of the node, for when the store fails
	got    int            // jobs taken for it in this round
	left   int            // units it may still have in this round; 0 = any number
	grants []lessor.Grant
	denial *lessor.Denial // the last; it counts while there is no grant

	// Of a request that is parked: its number in the order in which they came, its group and its neighbours there,
	// another request of its worker, its place by its end, and whether it is to be tried again for its own sake.
	number     uint64
	group      *group
	prev, next *requestCall
	sibling    *requestCall
	end        int
	parked     bool
	woken      bool
}

// holder is the worker that asks.
func (c *requestCall) holder() rules.Holder { return c.caller.holder(c.ask.Worker) }

func (c *requestCall) size() int { return 256 * c.ask.MaxLeases }

// Request answers with at least one grant, or a denial, or a refusal.
func (s *Scheduler) Request(
	ctx context.Context, c Caller, r lessor.LeaseRequest,
) ([]lessor.Grant, *lessor.Denial, error) {
	o, err := s.ask(ctx, c, r, "")
	if err != nil {
		return nil, nil, err
	}
	if err := s.do(ctx, &o.caller, o); err != nil {
		return nil, nil, err
	}
	grants, denial := o.result()
	return grants, denial, nil
}

// ask checks a request; prefix is that of its fields.
func (s *Scheduler) ask(ctx context.Context, c Caller, r lessor.LeaseRequest, prefix string) (*requestCall, error) {
	ask, err := rules.Request(&r, prefix)
	if err != nil {
		return nil, err
	}
	o := &requestCall{call: s.newCall(), ctx: ctx, caller: c, ask: ask}
	o.filter = lanes.Filter{Types: ask.Types, Tenant: c.Tenant}
	o.kind = kindOf(o)
	return o, nil
}

// result returns the answer: at least one grant, or a denial.
func (c *requestCall) result() ([]lessor.Grant, *lessor.Denial) {
	if len(c.grants) > 0 {
		return c.grants, nil
	}
	return nil, c.denial
}

// kindOf names what a request filters on: two requests of one kind see the same first job, but for unique ones.
func kindOf(o *requestCall) string {
	types := o.ask.Types
	if len(types) > 1 {
		types = slices.Sorted(slices.Values(types))
	}
	var b strings.Builder
	if t := o.caller.Tenant; t != nil {
		b.WriteByte('t')
		b.Write(t.UUID[:])
	}
	b.WriteString(strconv.Itoa(o.ask.MaxUnits))
	for _, t := range types {
		b.WriteByte(0)
		b.WriteString(t)
	}
	return b.String()
}

// giveBack releases the leases of a request whose worker has gone. As no worker has seen them, this costs their jobs
// neither an attempt nor an interruption. Leases of a request with an id stay: its worker repeats the request, and may
// have been answered with them by another node already.
func (s *Scheduler) giveBack(r *requestCall) {
	if r.ask.RequestID != "" {
		return
	}
	end := rules.End{
		Outcome: rules.OutcomeReleased, Said: rules.SaidReleased, Reason: "client_gone", Actor: rules.ActorScheduler,
		Uncounted: true,
	}
	o := &endCall{call: s.newCall()}
	for _, g := range r.grants {
		o.ends = append(o.ends, ending{id: g.Lease.ID, end: end})
	}
	if len(o.ends) > 0 {
		_ = s.calls.Put(r.caller.space().UUID, o) // if there is no room, the lease expires by itself
	}
}
