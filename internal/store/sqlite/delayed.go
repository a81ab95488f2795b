package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

var (
	waitingColumns = row.Columns(row.Waiting)
	readDue        = "select " + waitingColumns + " from delayed where until <= +? order by until, seq limit +?"
	readAhead      = "select " + waitingColumns + " from delayed where fence > 0 and queued_at > +? limit +?"
)

// Due implements scheduler.Tx.
func (t *tx) Due(ctx context.Context, now lessor.Instant, limit int) ([]scheduler.Waiting, error) {
	due, err := t.waiting(readDue, now, limit)
	return due, readFault(ctx, "read due jobs", err)
}

// Ahead implements scheduler.Tx.
func (t *tx) Ahead(ctx context.Context, after lessor.Instant, limit int) ([]scheduler.Waiting, error) {
	ahead, err := t.waiting(readAhead, after, limit)
	return ahead, readFault(ctx, "read waits that began in the future", err)
}

func (t *tx) waiting(text string, at lessor.Instant, limit int) ([]scheduler.Waiting, error) {
	return collect(t.conn, text, func(a *args) {
		a.instant(at)
		a.limit(limit)
	}, row.Waiting)
}

// CountWaiting implements scheduler.View.
func (v *view) CountWaiting(ctx context.Context) (n int, err error) {
	err = query(v.conn, "select count(*) from delayed where state = 'waiting'", nil, func(r *result) error {
		n = int(r.Int())
		return nil
	})
	return n, readFault(ctx, "count waiting jobs", err)
}

// NextDue implements scheduler.View.
func (v *view) NextDue(ctx context.Context) (next lessor.Instant, err error) {
	err = query(v.conn, "select min(until) from delayed", nil, func(r *result) error {
		next = r.instant()
		return nil
	})
	return next, readFault(ctx, "read next due time", err)
}
