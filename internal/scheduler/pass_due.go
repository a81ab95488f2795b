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
	if !f.Due(p.now) {
		return nil
	}
	due, err := p.tx.Due(ctx, p.now, dueLimit)
	if err != nil {
		return err
	}
	if err := p.follow(ctx); err != nil {
		return err
	}
	var unknown []rules.LaneID
	for i := range due {
		unknown = f.Unknown(unknown, due[i].Turn.Lane)
	}
	if err := p.l.learnLanes(ctx, p.tx, unknown); err != nil {
		return err
	}
	for _, w := range due {
		t := rules.Promote(w.Turn, w.Wait, p.now)
		p.moves = append(p.moves, Move{From: rules.Delayed, To: rules.InQueue, Turn: t})
		f.Enqueue(t)
		if w.Wait.State == lessor.Waiting {
			f.Wait(-1)
		}
		if e, ok := rules.CameDue(t, w.Wait); ok {
			p.publish(t.Job, f.Index.Lane(t.Lane).Tenant, func() lessor.Event { return e })
		}
	}
	if err := p.flush(ctx); err != nil {
		return err
	}
	f.DueAt, err = p.tx.NextDue(ctx)
	return err
}
