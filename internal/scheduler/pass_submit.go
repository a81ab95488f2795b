package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// submit stores the new jobs of this pass.
func (p *pass) submit(ctx context.Context, calls []*submitCall) error {
	if len(calls) == 0 {
		return nil
	}
	holders, err := p.takeKeys(ctx, calls)
	if err != nil {
		return err
	}
	var fresh []*rules.Spec
	for _, c := range calls {
		c.out = make([]Submitted, len(c.specs))
		if c.err != nil {
			continue
		}
		for i, s := range c.specs {
			if s.IdempotencyKey != "" && holders[keyOf(s)].Job != s.ID {
				c.out[i].Existing = true
				continue
			}
			fresh = append(fresh, s)
		}
	}
	if err := p.store(ctx, fresh); err != nil {
		return err
	}
	return p.showSubmitted(ctx, calls, holders)
}

func keyOf(s *rules.Spec) Key { return Key{Tenant: s.Lane.Tenant, Key: s.IdempotencyKey} }

// takeKeys gives the idempotency keys to jobs, and refuses each call that used a key with another body. The other keys
// of a refused call are free again for the calls behind it, so takeKeys works in rounds.
func (p *pass) takeKeys(ctx context.Context, calls []*submitCall) (map[Key]KeyHolder, error) {
	for _, c := range calls {
		c.err = p.l.recheck(c)
	}
	for {
		var wanted []JobKey
		for _, c := range calls {
			for _, s := range c.specs {
				if c.err == nil && s.IdempotencyKey != "" {
					wanted = append(wanted, JobKey{keyOf(s), KeyHolder{Job: s.ID, BodyHash: s.BodyHash}})
				}
			}
		}
		holders, err := p.tx.TakeKeys(ctx, wanted)
		if err != nil {
			return nil, err
		}
		free := refuseConflicts(calls, holders)
		if len(free) == 0 {
			return holders, nil
		}
		if err := p.tx.FreeKeys(ctx, free); err != nil {
			return nil, err
		}
	}
}

// refuseConflicts refuses the calls that used a key with another body, or a new key for a job that is unfit, and
// returns the keys that these calls hold. A call that differs only from one that is refused, or that itself waits for
// the next round, waits as well.
func refuseConflicts(calls []*submitCall, holders map[Key]KeyHolder) (free []Key) {
	undecided := map[lessor.JobID]bool{}
	for _, c := range calls {
		if c.err != nil {
			continue
		}
		waits := false
		for i, s := range c.specs {
			switch h := holders[keyOf(s)]; {
			case s.IdempotencyKey == "":
			case c.err == nil && h.Job == s.ID && c.unfit[i] != nil:
				c.err = c.unfit[i]
			case h.BodyHash == s.BodyHash:
			case undecided[h.Job]:
				waits = true
			case c.err == nil:
				c.err = c.keyConflict(i, h.Job)
			}
		}
		if c.err == nil && !waits {
			continue
		}
		for _, s := range c.specs {
			undecided[s.ID] = true
			if c.err != nil && s.IdempotencyKey != "" && holders[keyOf(s)].Job == s.ID {
				free = append(free, keyOf(s))
			}
		}
	}
	return free
}

// keyConflict says that a job of c uses the key of another job.
func (c *submitCall) keyConflict(i int, holder lessor.JobID) error {
	field, owner := "idempotency_key", fmt.Sprintf("job %s", holder)
	if c.batch {
		field = fmt.Sprintf("jobs[%d].%s", i, field)
		if own := slices.IndexFunc(c.specs, func(s *rules.Spec) bool { return s.ID == holder }); own >= 0 {
			owner = fmt.Sprintf("jobs[%d]", own)
		}
	}
	return &lessor.Error{
		Code: lessor.CodeConflict, Detail: "the body differs from the first one with this key",
		Fields: []lessor.FieldError{{Field: field, Message: "belongs to " + owner}},
	}
}

// store writes new jobs and puts each where it waits.
func (p *pass) store(ctx context.Context, specs []*rules.Spec) error {
	if len(specs) == 0 {
		return nil
	}
	if err := p.lanesOf(ctx, specs); err != nil {
		return err
	}
	first, err := p.tx.Seqs(ctx, len(specs))
	if err != nil {
		return err
	}
	for i, s := range specs {
		s.Seq, s.CreatedAt = first+int64(i), p.now
		if s.Delay > 0 {
			s.RunAt = p.now.Add(s.Delay)
		}
		if s.RunAt <= p.now {
			s.RunAt = 0
		}
	}
	if err := p.tx.Insert(ctx, specs); err != nil {
		return err
	}
	for _, s := range specs {
		p.enqueueNew(s)
	}
	p.stats.Submitted += len(specs)
	return p.flush(ctx)
}

func (p *pass) enqueueNew(s *rules.Spec) {
	t := rules.Turn{
		Job: s.ID, Lane: s.LaneID, Seq: s.Seq, MaxAttempts: s.MaxAttempts, Steps: 1, QueuedAt: p.now, RowRef: s.RowRef,
	}
	p.publish(s.ID, s.Lane.Tenant, func() lessor.Event { return rules.Submitted(s) })
	if !s.ResumedFrom.IsZero() {
		n := rules.Resumed(s, p.now)
		p.notes = append(p.notes, n)
		t.Steps++
		p.publish(s.ID, s.Lane.Tenant, func() lessor.Event { return n.Event(t.Steps, n.From, "") })
	}
	if s.RunAt != 0 {
		w := rules.Wait{Until: s.RunAt, State: lessor.Queued}
		p.moves = append(p.moves, Move{From: rules.Nowhere, To: rules.Delayed, Turn: t, Wait: w})
		p.l.fold.Delay(w.Until)
		return
	}
	p.moves = append(p.moves, Move{From: rules.Nowhere, To: rules.InQueue, Turn: t})
	p.l.fold.Enqueue(t)
}

// showSubmitted fills the answers: new jobs as they were stored, known ones as they stand now.
func (p *pass) showSubmitted(ctx context.Context, calls []*submitCall, holders map[Key]KeyHolder) error {
	var ids []lessor.JobID
	for _, c := range calls {
		for i, s := range c.specs {
			if c.err == nil && c.out[i].Existing {
				ids = append(ids, holders[keyOf(s)].Job)
			}
		}
	}
	standings, err := p.tx.Standings(ctx, ids)
	if err != nil {
		return err
	}
	for _, c := range calls {
		for i, s := range c.specs {
			switch {
			case c.err != nil:
			case c.out[i].Existing:
				if st := standings[holders[keyOf(s)].Job]; st != nil {
					c.out[i].Job = rules.Show(st)
				}
			default:
				turn := rules.Turn{MaxAttempts: s.MaxAttempts}
				c.out[i].Job = rules.Show(&rules.Standing{Spec: s, Place: rules.InQueue, Turn: turn})
			}
		}
	}
	return nil
}

// lanesOf gives each spec the number of its lane.
func (p *pass) lanesOf(ctx context.Context, specs []*rules.Spec) error {
	f := p.l.fold
	var unknown []rules.Lane
	asked := map[rules.Lane]bool{}
	for _, s := range specs {
		id, known := f.LaneID(s.Lane)
		if s.LaneID = id; !known && !asked[s.Lane] {
			unknown, asked[s.Lane] = append(unknown, s.Lane), true
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	ids, err := p.tx.Lanes(ctx, unknown)
	if err != nil {
		return err
	}
	for i, l := range unknown {
		f.AddLane(ids[i], l, false)
	}
	for _, s := range specs {
		s.LaneID, _ = f.LaneID(s.Lane)
	}
	return nil
}

// recheck checks payloads against schemas that were registered between the first check and the commit. A job with a key
// that breaks one is unfit.
func (s *Scheduler) recheck(c *submitCall) error {
	now := s.handlers.Load()
	if now == c.checked {
		return nil
	}
	for i, spec := range c.specs {
		prefix := ""
		if c.batch {
			prefix = fmt.Sprintf("jobs[%d].", i)
		}
		err := now.check(spec.Lane.Type, spec.Payload, prefix)
		if err != nil && spec.IdempotencyKey == "" {
			return err
		}
		c.unfit[i] = cmp.Or(c.unfit[i], err)
	}
	return nil
}
