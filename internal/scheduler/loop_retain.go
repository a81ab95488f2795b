package scheduler

import (
	"context"
	"sync/atomic"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// Retention is how long ended jobs are kept; zero is for ever.
type Retention struct {
	Jobs  time.Duration // payload, result, checkpoint, idempotency key
	Audit time.Duration // the rest: outcome, attempts, record
}

// Retention removes ended jobs in pages, so that no transaction is long. Between two pages the loop answers calls, for
// at least retainPause and at least as long as the page took. When nothing is left to remove, retention runs again
// after retainEvery.
const (
	retainEvery = time.Minute
	retainSoon  = time.Second
	retainPause = 50 * time.Millisecond
)

// retaining is the state of retention.
type retaining struct {
	at    lessor.Instant // when it goes on
	page  int            // the size of the next
	ended atomic.Int64   // attempts that ended since the last
	idle  idleLanes      // that are left to be removed
}

func (l *loop) retainDue() bool { return l.retaining.at <= l.fold.Serving.LastBeat }

// retain removes ended jobs whose retention is over, one page per transaction. It is called again soon if there are
// more.
func (l *loop) retain(ctx context.Context) error {
	start, took, full, wait := l.now(), time.Duration(0), false, min(retainEvery, l.pace.Lanes)
	r := &l.retaining
	r.page = max(r.page, rules.MinRetainPage)
	for _, stage := range []struct {
		keep time.Duration
		page func(Tx, context.Context, lessor.Instant, int) (int, error)
	}{{l.cfg.Retention.Jobs, Tx.Strip}, {l.cfg.Retention.Audit, Tx.Purge}, {l.cfg.Retention.Audit, Tx.PurgeRecords}} {
		if stage.keep == 0 {
			continue
		}
		n, start := 0, l.now()
		_, err := l.transact(ctx, 0, func(p *pass) (err error) {
			n, err = stage.page(p.tx, ctx, p.now.Add(-stage.keep), r.page)
			return err
		})
		if err != nil {
			return err
		}
		took = max(took, l.now().Sub(start))
		full = full || n >= r.page
		if n > 0 {
			wait = retainSoon
		}
	}
	more, err := l.sweepLanes(ctx)
	if err != nil {
		return err
	}
	r.page = rules.RetainPage(r.page, took, full, int(r.ended.Swap(0)))
	if full || more {
		l.retaining.at = l.fold.Serving.LastBeat.Add(max(retainPause, l.now().Sub(start)))
		return nil
	}
	l.retaining.at = l.fold.Serving.LastBeat.Add(wait)
	// alerts that another node raised before it died
	return l.store.View(ctx, func(v View) error { return l.loadAlerted(ctx, v) })
}
