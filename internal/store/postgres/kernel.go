package postgres

import (
	"context"

	"lessor"
	"lessor/internal/store/postgres/wire"
)

// purgesOfKernel remove a page each, the oldest first, and count it. What another node purges is passed over.
var purgesOfKernel = []*wire.Statement{
	purgePage("tick", "tick_at < $1::bigint order by tick_at"),
	purgePage("alert", "cleared_at > 0 and cleared_at < $1::bigint order by cleared_at"),
	purgePage("audit", "at < $1::bigint order by at"),
}

func purgePage(table, old string) *wire.Statement {
	return wire.SQL("with gone as (delete from " + table + " where ctid = any(array(select ctid from " + table + " where " + old +
		" limit $2::bigint for update skip locked)) returning 1) select count(*) from gone")
}

// PurgeRecords implements scheduler.Tx.
func (t *tx) PurgeRecords(_ context.Context, before lessor.Instant, limit int) (n int, err error) {
	if limit <= 0 || t.err != nil {
		return 0, t.err
	}
	for _, s := range purgesOfKernel {
		t.add("purge", wire.Step{Stmt: s, Each: func(r *wire.Row) error {
			n += int(r.Int())
			return nil
		}}, wire.Instant(before), wire.Limit(limit))
	}
	err = t.send("purge")
	t.wrote = t.wrote || n > 0
	return n, err
}
