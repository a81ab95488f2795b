package scheduler

import (
	"context"
	"fmt"

	"lessor"
	"lessor/internal/rules"
)

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

// lockJobs keeps jobs where they are, and brings the fold up to date with them.
func (p *pass) lockJobs(ctx context.Context, jobs []lessor.JobID) (map[lessor.JobID]*rules.Standing, error) {
	standings, err := p.tx.Lock(ctx, jobs)
	if err != nil {
		return nil, err
	}
	if err := p.follow(ctx); err != nil {
		return nil, err
	}
	var unknown []rules.LaneID
	for _, st := range standings {
		unknown = p.l.fold.Unknown(unknown, st.Turn.Lane)
	}
	return standings, p.l.learnLanes(ctx, p.tx, unknown)
}

// apply writes a decision about a job, and updates the fold.
func (p *pass) apply(ctx context.Context, st *rules.Standing, ch rules.Change) error {
	if err := p.note(ctx, st, ch); err != nil {
		return err
	}
	return p.flush(ctx)
}

// note is apply for one of many jobs: what it decides is written by flush.
func (p *pass) note(ctx context.Context, st *rules.Standing, ch rules.Change) error {
	tenant := st.Spec.Lane.Tenant
	steps := st.Turn.Steps
	if st.Held != nil {
		steps = st.Held.Steps() - len(ch.Notes) // the decision has marked the lease already
	}
	for i, n := range ch.Notes {
		from := n.From
		p.publish(n.Job, tenant, func() lessor.Event { return n.Event(steps+i+1, from, "") })
	}
	p.notes = append(p.notes, ch.Notes...)
	if ch.CancelLease {
		if err := p.tx.SaveLeases(ctx, []*rules.Held{st.Held}); err != nil {
			return err
		}
		p.l.fold.Cancel(st.Held)
	}
	if ch.Question != nil {
		answered := rules.Report{Job: st.Spec.ID, At: p.now, Question: ch.Question}
		if err := p.tx.SaveReports(ctx, []rules.Report{answered}); err != nil {
			return err
		}
	}
	switch {
	case ch.Next == nil:
	case st.Place == rules.Leased:
		p.endLease(st.Held, *ch.Next)
	default:
		if st.Place == rules.InQueue {
			p.l.fold.Remove(st.Turn)
		}
		if st.State() == lessor.Waiting {
			p.l.fold.Wait(-1)
		}
		turn := ch.Next.Turn
		if ch.Next.Place == rules.Ended {
			turn = st.Turn
		}
		p.moves = append(p.moves, Move{
			From: st.Place, To: ch.Next.Place, Turn: turn, Wait: ch.Next.Wait, Attempt: ch.Next.Attempt,
			Done: ch.Next.Done,
		})
		p.place(*ch.Next)
	}
	return nil
}
