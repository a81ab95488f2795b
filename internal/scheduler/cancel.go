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

// Answer answers the question of a job that waits, which queues the job.
func (s *Scheduler) Answer(ctx context.Context, c Caller, id lessor.JobID, a lessor.Answer) (lessor.Job, error) {
	if err := rules.CheckAnswer(&a); err != nil {
		return lessor.Job{}, err
	}
	return s.alter(ctx, c, id, func(st *rules.Standing, now lessor.Instant) (rules.Change, error) {
		return rules.Answer(st, &a, c.Actor, now)
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
		if st.Place == rules.Ended { // its record may have grown since: a resume adds an entry
			all, err := p.tx.Histories(ctx, []lessor.JobID{id})
			if err != nil {
				return fmt.Errorf("load record: %w", err)
			}
			st.Turn.Steps = len(rules.Record(all[id]))
		}
		ch, err := decide(st, p.now)
		if err != nil {
			return err
		}
		if ch.Question != nil {
			p.audit(c, "job.answered", id.String(), st.Report.Question, ch.Question)
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
