package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	waitingColumns = turnColumns + ", until, state"
	waitingTypes   = turnTypes + "it"
)

var (
	// lockDue passes over rows that another node is promoting.
	lockDue = sql("select " + waitingColumns + " from delayed where until <= $1::bigint order by until, seq limit $2::bigint" +
		" for update skip locked")
	nextDue = sql("select until from delayed where until > 0 order by until limit 1")
)

func bindWaiting(r *rows, t *rules.Turn, w rules.Wait) {
	bindTurn(r, t)
	r.instant(w.Until)
	r.text(string(w.State))
}

func readWaiting(r *row) scheduler.Waiting {
	return scheduler.Waiting{
		Turn: readTurn(r),
		Wait: rules.Wait{Until: r.instant(), State: lessor.State(r.text())},
	}
}

// Due implements scheduler.Tx.
func (t *tx) Due(_ context.Context, now lessor.Instant, limit int) ([]scheduler.Waiting, error) {
	if limit <= 0 || t.err != nil {
		return nil, t.err
	}
	var due []scheduler.Waiting
	err := t.locked("lock due jobs", func() {
		t.add("lock due jobs", step{stmt: lockDue, each: func(r *row) error {
			due = append(due, readWaiting(r))
			return nil
		}}, instantOf(now), int8Of(int64(limit)))
	})
	return due, err
}

// NextDue implements scheduler.View.
func (v *view) NextDue(context.Context) (next lessor.Instant, err error) {
	err = v.query("read next due time", nextDue, func(r *row) error {
		next = r.instant()
		return nil
	})
	return next, err
}
