package scheduler

import (
	"context"
	"time"

	"lessor"
)

// Retention is how long ended jobs are kept; zero is for ever.
type Retention struct {
	Jobs  time.Duration // payload, result, checkpoint, idempotency key
	Audit time.Duration // the rest: what became of it, attempts, record
}

// How ended jobs leave: in pages, so that no transaction is long, and rarely.
const (
	retainEvery = time.Minute
	retainLimit = 500
)

func (s *Scheduler) retainDue() bool { return s.fold.retainAt <= s.fold.serving.LastBeat }

// retain lets ended jobs go whose time is over, a page a transaction. It is called again soon if there are more.
func (s *Scheduler) retain(ctx context.Context) error {
	now := s.fold.serving.LastBeat
	s.fold.retainAt = now.Add(retainEvery)
	for _, stage := range []struct {
		keep time.Duration
		page func(Tx, context.Context, lessor.Instant, int) (int, error)
	}{{s.cfg.Retention.Jobs, Tx.Strip}, {s.cfg.Retention.Audit, Tx.Purge}, {s.cfg.Retention.Audit, Tx.PurgeKernel}} {
		if stage.keep == 0 {
			continue
		}
		n := 0
		_, err := s.transact(ctx, 0, func(p *pass) (err error) {
			n, err = stage.page(p.tx, ctx, p.now.Add(-stage.keep), retainLimit)
			return err
		})
		if err != nil {
			return err
		}
		if n == retainLimit {
			s.fold.retainAt = now.Add(serveEvery)
		}
	}
	return s.store.View(ctx, func(v View) error { return s.loadAlerted(ctx, v, s.fold) }) // what another node raised before it died
}
