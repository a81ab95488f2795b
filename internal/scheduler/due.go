package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// Waiting is a job that waits for its time.
type Waiting struct {
	Turn rules.Turn
	Wait rules.Wait
}

// dueLimit bounds the waiting jobs that come due in one commit; the rest follow in the next.
const dueLimit = 2000

// promote puts waiting jobs whose time has come into the queue.
func (p *pass) promote(ctx context.Context) error {
	f := p.l.fold
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
	if err := p.meetDue(ctx, due); err != nil {
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
