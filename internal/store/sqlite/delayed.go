package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const waitingColumns = turnColumns + ", until, state"

func bindWaiting(a *args, t *rules.Turn, w rules.Wait) {
	bindTurn(a, t)
	a.instant(w.Until)
	a.text(string(w.State))
}

func readWaiting(r *row) scheduler.Waiting {
	return scheduler.Waiting{
		Turn: readTurn(r),
		Wait: rules.Wait{Until: r.instant(), State: lessor.State(r.text())},
	}
}

// Due implements scheduler.Tx.
func (t *tx) Due(ctx context.Context, now lessor.Instant, limit int) ([]scheduler.Waiting, error) {
	var due []scheduler.Waiting
	err := query(t.conn, "select "+waitingColumns+" from delayed where until <= +? order by until, seq limit +?",
		func(a *args) {
			a.instant(now)
			a.int(int64(max(0, limit))) // a negative limit is none to SQLite
		},
		func(r *row) error {
			due = append(due, readWaiting(r))
			return nil
		})
	return due, readFault(ctx, "read due jobs", err)
}

// Ahead implements scheduler.Tx.
func (t *tx) Ahead(ctx context.Context, after lessor.Instant, limit int) ([]scheduler.Waiting, error) {
	var ahead []scheduler.Waiting
	err := query(t.conn, "select "+waitingColumns+" from delayed where fence > 0 and queued_at > +? limit +?",
		func(a *args) {
			a.instant(after)
			a.int(int64(max(0, limit)))
		},
		func(r *row) error {
			ahead = append(ahead, readWaiting(r))
			return nil
		})
	return ahead, readFault(ctx, "read waits that began ahead", err)
}

// NextDue implements scheduler.View.
func (v *view) NextDue(ctx context.Context) (next lessor.Instant, err error) {
	err = query(v.conn, "select min(until) from delayed", nil, func(r *row) error {
		next = r.instant()
		return nil
	})
	return next, readFault(ctx, "read next due time", err)
}
