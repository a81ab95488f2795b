package scheduler

import (
	"context"
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/lanes"
	"lessor/internal/rules"
)

// round is one handing-out of jobs to all who ask.
type round struct {
	p      *pass
	denied map[kind]*lessor.Denial // what this round has nothing for, so that equals need not look again
	taken  []taken
	shown  []*requestCall // that get again what they were granted before
	again  map[*requestCall][]*rules.Held
	// undecided are repeated requests whose lease has lapsed and was not ended yet: they ask again, or wait, until it is.
	undecided map[*requestCall]bool
	firsts    map[RequestRef]*requestCall // the first of each repeatable request in this round
	twins     map[*requestCall]*requestCall
	checked   int                       // payloads
	rejected  int                       // of these
	trial     map[string]*rules.Circuit // open circuits of which one job may be tried
}

// kind is a filter and whether unique jobs are skipped.
type kind struct {
	filter string
	holder bool
}

// lineTx is a transaction of a store that finds jobs by their places in line faster than by their ids. It returns them in the
// order of the turns; nil for a job that is not known.
type lineTx interface {
	SpecsAt(ctx context.Context, turns []rules.Turn) ([]*rules.Spec, error)
}

// grant hands out jobs: first to the parked requests that what happened may concern, then to new ones, each in the order they came.
func (p *pass) grant(ctx context.Context, fresh []*requestCall) error {
	p.l.parked.tried = nil
	if !p.l.wakes() && len(fresh) == 0 {
		return nil
	}
	if err := p.gate(ctx); err != nil {
		return err
	}
	r := &round{
		p: p, denied: map[kind]*lessor.Denial{}, again: map[*requestCall][]*rules.Held{}, undecided: map[*requestCall]bool{},
		firsts: map[RequestRef]*requestCall{}, twins: map[*requestCall]*requestCall{},
	}
	if err := r.trials(ctx); err != nil {
		return err
	}
	if err := r.recall(ctx, fresh); err != nil {
		return err
	}
	p.l.wakes() // by what other nodes did, too
	if err := r.retry(ctx); err != nil {
		return err
	}
	for _, c := range fresh {
		c.until = p.now.Add(c.ask.Wait)
		p.l.workers.asked(c.caller, c.ask, c.kind, p.now)
		if err := r.serve(ctx, c, false); err != nil {
			return err
		}
	}
	if err := r.lease(ctx); err != nil {
		return err
	}
	return r.answer(ctx, fresh)
}

// recall finds what repeated requests were granted before.
func (r *round) recall(ctx context.Context, calls []*requestCall) error {
	var refs []RequestRef
	for _, c := range calls {
		if c.ask.RequestID != "" {
			refs = append(refs, refOf(c))
		}
	}
	found, err := r.p.tx.Requested(ctx, refs)
	if err != nil {
		return err
	}
	for _, c := range calls {
		for _, h := range found[refOf(c)] {
			switch {
			case !c.caller.sees(h.Tenant):
			case rules.Over(h, r.p.now, r.p.serving) == "":
				r.again[c] = append(r.again[c], h)
			default:
				r.p.l.fold.CheckNow(h.ID, r.p.now)
				r.undecided[c] = true
			}
		}
	}
	return nil
}

func refOf(c *requestCall) RequestRef {
	return RequestRef{Holder: c.holder(), RequestID: c.ask.RequestID}
}

// serve takes from the queue what one request gets, or says why it gets nothing.
func (r *round) serve(ctx context.Context, c *requestCall, parked bool) error {
	if c.abandoned() {
		return nil
	}
	c.grants, c.shared, c.got, c.left = nil, false, 0, c.ask.MaxUnits
	if c.ask.RequestID != "" {
		if parked {
			if err := r.recall(ctx, []*requestCall{c}); err != nil {
				return err
			}
		}
		if r.again[c] != nil {
			r.shown = append(r.shown, c)
			return nil
		}
		if r.undecided[c] {
			c.denial = rules.NoneLeft(r.p.now, r.p.now)
			return nil
		}
		if first := r.firsts[refOf(c)]; first != nil {
			r.twins[c] = first
			return nil
		}
		r.firsts[refOf(c)] = c
	}
	r.fill(c)
	return nil
}

// fill takes up to as many jobs as c asks for, each counted before the next is chosen.
func (r *round) fill(c *requestCall) {
	f := r.p.l.fold
	holds := f.Holds(c.holder()).Leases > 0
	for c.got < c.ask.MaxLeases {
		k := kind{c.kind, holds || c.got > 0}
		denial := r.denied[k]
		if denial == nil || c.left != c.ask.MaxUnits {
			var pick lanes.Pick
			if pick, denial = r.next(c, c.left, k.holder); denial == nil {
				r.taken = append(r.taken, taken{call: c, turn: f.Index.Take(pick)})
				r.try(pick.Lane)
				c.got++
				if c.left > 0 {
					c.left -= pick.Lane.Units
					if c.left == 0 {
						return
					}
				}
				continue
			}
			if c.left == c.ask.MaxUnits {
				r.denied[k] = denial
			}
		}
		if c.got == 0 {
			c.denial = denial
		}
		return
	}
}

// next chooses the job whose turn it is for c, in the order that the contract gives.
func (r *round) next(c *requestCall, maxUnits int, holder bool) (lanes.Pick, *lessor.Denial) {
	l, p := r.p.l, r.p
	capacity := l.capacity(p.now)
	if d := rules.Admit(capacity, l.settings.Draining); d != nil {
		return lanes.Pick{}, d
	}
	c.filter.MaxUnits, c.filter.Usable, c.filter.SkipUnique = maxUnits, capacity.UsableUnits, holder
	pick, ok := l.fold.Index.Next(&c.filter)
	if !ok {
		return lanes.Pick{}, rules.NoneLeft(p.now, l.nextChange(c.caller))
	}
	kept := l.kept(p.now, capacity)
	if kept != nil && pick.Turn.Seq != kept.seq { // what is kept is not there for others
		free := capacity.AvailableUnits
		if capacity.AvailableUnits -= kept.units; capacity.AvailableUnits <= 0 {
			return lanes.Pick{}, rules.Fit(kept.units, min(free, kept.units-1))
		}
	}
	d := rules.Fit(pick.Lane.Units, capacity.AvailableUnits)
	if d == nil {
		return pick, nil
	}
	l.starve(pick, p.now)
	if !l.cfg.Backfill || kept != nil {
		return lanes.Pick{}, d
	}
	c.filter.Usable = capacity.AvailableUnits
	if pick, ok = l.fold.Index.Next(&c.filter); !ok {
		return lanes.Pick{}, d
	}
	return pick, nil
}

// nextChange is when the queue may change by itself. A walled caller is not told: it would learn when others' jobs are due.
func (l *loop) nextChange(c Caller) lessor.Instant {
	if c.Tenant != nil {
		return 0
	}
	next := l.fold.DueAt
	if at, ok := l.fold.NextCheck(l.cfg.Sweep); ok && (next == 0 || at < next) {
		next = at
	}
	return next
}

// lease makes the leases of all jobs that were taken, and moves the jobs.
func (r *round) lease(ctx context.Context) error {
	if len(r.taken) == 0 {
		return nil
	}
	p := r.p
	for lacking := []*requestCall{nil}; len(lacking) > 0; {
		if err := r.readSpecs(ctx); err != nil {
			return err
		}
		lacking = r.unfit()
		for _, c := range lacking {
			r.fill(c)
		}
	}
	p.moves, p.stats.Waited = slices.Grow(p.moves, len(r.taken)), slices.Grow(p.stats.Waited, len(r.taken))
	for i := range r.taken {
		t := &r.taken[i]
		if t.spec == nil {
			return fmt.Errorf("job %s is queued and has no job row: %w", t.turn.Job, ErrMoved)
		}
		if err := p.l.confirm(t); err != nil {
			return err
		}
		t.held = p.held(t)
		p.l.parked.wakeTwins(t.call)
		p.stats.Waited = append(p.stats.Waited, p.now.Sub(t.turn.QueuedAt))
		p.moves = append(p.moves, Move{From: rules.InQueue, To: rules.Leased, Turn: t.turn, Held: t.held})
		p.l.fold.Grant(t.held, rules.NextLook(t.held, p.now, p.serving))
		p.tell(t.turn.Job, t.held.Tenant, func() lessor.Event { return rules.Granted(t.held) })
	}
	p.stats.Granted += len(r.taken)
	if err := r.tried(ctx); err != nil {
		return err
	}
	if err := r.met(ctx); err != nil {
		return err
	}
	return p.flush(ctx)
}

// readSpecs reads what the jobs are that were taken, once for lease and answer.
func (r *round) readSpecs(ctx context.Context) error {
	if tx, ok := r.p.tx.(lineTx); ok {
		turns := make([]rules.Turn, len(r.taken))
		for i := range r.taken {
			turns[i] = r.taken[i].turn
		}
		specs, err := tx.SpecsAt(ctx, turns)
		for i := range specs {
			r.taken[i].spec = specs[i]
		}
		return err
	}
	ids := make([]lessor.JobID, len(r.taken))
	for i := range r.taken {
		ids[i] = r.taken[i].turn.Job
	}
	specs, err := r.p.tx.Specs(ctx, ids)
	for i := range r.taken {
		r.taken[i].spec = specs[ids[i]]
	}
	return err
}
