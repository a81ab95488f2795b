package postgres

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	waitingColumns = row.Columns(row.Waiting)
	// lockDue skips rows that another node is promoting.
	lockDue = wire.SQL("select " + waitingColumns + " from delayed where until <= $1::bigint" +
		" order by until, seq limit $2::bigint for update skip locked")
	// lockAhead skips rows that another node has locked. The few jobs that wait for a retry have an index.
	lockAhead = wire.SQL("select " + waitingColumns + " from delayed where fence > 0 and queued_at > $1::bigint" +
		" limit $2::bigint for update skip locked")
	readWaiting = wire.SQL("select count(*) from delayed where state = 'waiting'")

	nextDue = wire.SQL("select until from delayed where until > 0 order by until limit 1")
)

// Due implements scheduler.Tx.
func (t *tx) Due(_ context.Context, now lessor.Instant, limit int) ([]scheduler.Waiting, error) {
	return t.lockWaiting("lock due jobs", lockDue, now, limit)
}

// Ahead implements scheduler.Tx.
func (t *tx) Ahead(_ context.Context, after lessor.Instant, limit int) ([]scheduler.Waiting, error) {
	return t.lockWaiting("lock waits that began in the future", lockAhead, after, limit)
}

func (t *tx) lockWaiting(
	verb string, s *wire.Statement, at lessor.Instant, limit int,
) (waiting []scheduler.Waiting, err error) {
	if limit <= 0 || t.err != nil {
		return nil, t.err
	}
	err = t.locked(verb, func() {
		t.add(verb, wire.Step{Stmt: s, Each: collect(&waiting, row.Waiting)}, wire.Instant(at), wire.Int8(int64(limit)))
	})
	return waiting, err
}

// CountWaiting implements scheduler.View.
func (v *view) CountWaiting(context.Context) (n int, err error) {
	err = v.query("count waiting jobs", readWaiting, func(r *wire.Row) error {
		n = int(r.Int())
		return nil
	})
	return n, err
}

// NextDue implements scheduler.View.
func (v *view) NextDue(context.Context) (next lessor.Instant, err error) {
	err = v.query("read next due time", nextDue, func(r *wire.Row) error {
		next = r.Instant()
		return nil
	})
	return next, err
}
