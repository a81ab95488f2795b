package scheduler

import (
	"context"
	"fmt"

	"lessor"
	"lessor/internal/rules"
)

// Cancel ends a job that waits, and asks the worker of a held one to stop; with force it takes the lease away now.
func (s *Scheduler) Cancel(ctx context.Context, c Caller, id lessor.JobID, force bool) (lessor.Job, error) {
	return s.alter(ctx, c, id, func(st *rules.Standing, now lessor.Instant) (rules.Change, error) {
		return rules.Cancel(st, force, c.Actor, now)
	})
}

// Retry queues a job that ended badly, or that waits for its retry, now.
func (s *Scheduler) Retry(ctx context.Context, c Caller, id lessor.JobID) (lessor.Job, error) {
	return s.alter(ctx, c, id, func(st *rules.Standing, now lessor.Instant) (rules.Change, error) {
		return rules.Retry(st, c.Actor, now)
	})
}

type decision func(st *rules.Standing, now lessor.Instant) (rules.Change, error)

// alter applies a decision to one job and returns the job as it is then.
func (s *Scheduler) alter(ctx context.Context, c Caller, id lessor.JobID, decide decision) (lessor.Job, error) {
	var job lessor.Job
	err := s.change(ctx, c, func(ctx context.Context, p *pass) error {
		st, err := p.lock(ctx, c, id)
		if err != nil {
			return err
		}
		ch, err := decide(st, p.now)
		if err != nil {
			return err
		}
		if err := p.apply(ctx, st, ch); err != nil {
			return err
		}
		all, err := p.tx.Standings(ctx, []lessor.JobID{id})
		if err != nil {
			return fmt.Errorf("load job: %w", err)
		}
		if st = all[id]; st == nil {
			return fmt.Errorf("job %s is in no place: %w", id, ErrMoved)
		}
		job = rules.Show(st)
		return nil
	})
	return job, err
}

// lock loads one job that the caller may see and keeps it where it is.
func (p *pass) lock(ctx context.Context, c Caller, id lessor.JobID) (*rules.Standing, error) {
	all, err := p.lockJobs(ctx, []lessor.JobID{id})
	if err != nil {
		return nil, fmt.Errorf("load job: %w", err)
	}
	st := all[id]
	if st == nil || !c.sees(st.Spec.Lane.Tenant) {
		return nil, lessor.ErrJobNotFound
	}
	return st, nil
}

// apply writes what was decided about a job, and brings the fold along.
func (p *pass) apply(ctx context.Context, st *rules.Standing, ch rules.Change) error {
	tenant := st.Spec.Lane.Tenant
	steps := st.Turn.Steps
	if st.Held != nil {
		steps = st.Held.Steps() - len(ch.Notes) // the decision has marked the lease already
	}
	for i, n := range ch.Notes {
		from := n.From
		p.tell(n.Job, tenant, func() lessor.Event { return n.Event(steps+i+1, from, "") })
	}
	p.notes = append(p.notes, ch.Notes...)
	if ch.Mark {
		if err := p.tx.SaveLeases(ctx, []*rules.Held{st.Held}); err != nil {
			return err
		}
	}
	switch {
	case ch.Next == nil:
	case st.Place == rules.Leased:
		p.leave(st.Held, *ch.Next)
	default:
		if st.Place == rules.InQueue {
			p.l.fold.Remove(st.Turn)
		}
		turn := ch.Next.Turn
		if ch.Next.Place == rules.Ended {
			turn = st.Turn
		}
		p.moves = append(p.moves, Move{From: st.Place, To: ch.Next.Place, Turn: turn, Attempt: ch.Next.Attempt, Done: ch.Next.Done})
		p.arrive(*ch.Next)
	}
	return p.flush(ctx)
}
