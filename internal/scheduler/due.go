package scheduler

import (
	"context"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// dueLimit bounds the waiting jobs that come due in one commit; the rest follow in the next.
const dueLimit = 2000

// promote puts waiting jobs whose time has come into the queue.
func (p *pass) promote(ctx context.Context) error {
	f := p.s.fold
	if !f.due(p.now) {
		return nil
	}
	due, err := p.tx.Due(ctx, p.now, dueLimit)
	if err != nil {
		return err
	}
	if err := p.follow(ctx); err != nil {
		return err
	}
	for _, w := range due {
		t := rules.Promote(w.Turn, w.Wait, p.now)
		p.moves = append(p.moves, Move{From: rules.Delayed, To: rules.InQueue, Turn: t})
		f.enqueue(t)
		if e, ok := rules.CameDue(t, w.Wait); ok {
			p.tell(t.Job, f.index.Lane(t.Lane).Tenant, func() lessor.Event { return e })
		}
	}
	if err := p.flush(ctx); err != nil {
		return err
	}
	f.dueAt, err = p.tx.NextDue(ctx)
	return err
}

// How ended jobs are removed: in pages, so that no commit is long, and rarely.
const (
	purgeEvery = time.Minute
	purgeLimit = 500
)

// purge removes jobs whose retention is over, a page a transaction.
func (s *Scheduler) purge(ctx context.Context) error {
	now := s.fold.serving.LastBeat
	if s.fold.purgeAt > now {
		return nil
	}
	s.fold.purgeAt = now.Add(purgeEvery)
	if s.cfg.Retention == 0 {
		return nil
	}
	n := 0
	_, err := s.transact(ctx, 0, func(p *pass) (err error) {
		n, err = p.tx.Purge(ctx, p.now.Add(-s.cfg.Retention), purgeLimit)
		return err
	})
	if err == nil && n == purgeLimit {
		s.fold.purgeAt = now.Add(serveEvery)
	}
	return err
}
