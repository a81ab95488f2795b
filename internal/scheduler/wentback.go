package scheduler

import (
	"context"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/fold"
)

// storeSubject is what the alert about a store that went back is about.
const storeSubject = "store"

// sameLoss is how long after an alert another node's sight of a store that went back counts as the same event.
const sameLoss = time.Minute

// askWentBack asks the store whether it went back.
func (l *loop) askWentBack() {
	if r, ok := l.store.(rewinder); ok && l.wentBack == "" {
		l.wentBack = r.WentBack()
	}
}

// tellWentBack raises the alert about a store that went back. An older one is about an earlier event, and ends.
func (l *loop) tellWentBack(ctx context.Context) error {
	_, err := l.transact(ctx, 0, func(p *pass) error {
		open, err := p.tx.OpenAlert(ctx, lessor.AlertStoreWentBack, storeSubject, lessor.TenantID{})
		if err != nil {
			return err
		}
		if open != nil && p.now.Sub(open.RaisedAt) > sameLoss {
			if err := p.clear(ctx, lessor.AlertStoreWentBack, storeSubject, lessor.TenantID{}); err != nil {
				return err
			}
		}
		return p.raise(ctx, lessor.AlertStoreWentBack, storeSubject, lessor.TenantID{},
			"the store went back to an older state, and changes that were acknowledged may be lost: "+l.wentBack)
	})
	if err == nil {
		l.wentBack = ""
	}
	return err
}

// maxStrangers bounds the jobs that are remembered as not what they were chosen as.
const maxStrangers = 1000

// confirm makes sure that a job is of the lane by which it was chosen: its row says whose it is. If not, the fold is wrong and is
// rebuilt; if that does not help, the rows contradict each other, and the job is left out.
func (l *loop) confirm(t *taken) error {
	if t.spec.LaneID == t.turn.Lane && t.spec.Lane == l.fold.Index.Lane(t.turn.Lane) {
		return nil
	}
	if l.strangers == nil || len(l.strangers) >= maxStrangers {
		l.strangers = map[lessor.JobID]int{}
	}
	l.strangers[t.turn.Job]++
	return fmt.Errorf("job %s is not of lane %d: %w", t.turn.Job, t.turn.Lane, fold.ErrStale)
}
