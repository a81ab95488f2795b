package postgres

import (
	"context"

	"lessor"
)

// purgesOfKernel remove a page each, the oldest first, and count it. What another node purges is passed over.
var purgesOfKernel = []*statement{
	purgePage("tick", "tick_at < $1::bigint order by tick_at"),
	purgePage("alert", "cleared_at > 0 and cleared_at < $1::bigint order by cleared_at"),
	purgePage("audit", "at < $1::bigint order by at"),
}

func purgePage(table, old string) *statement {
	return sql("with gone as (delete from " + table + " where ctid = any(array(select ctid from " + table + " where " + old +
		" limit $2::bigint for update skip locked)) returning 1) select count(*) from gone")
}

// PurgeKernel implements scheduler.KernelTx.
func (t *tx) PurgeKernel(_ context.Context, before lessor.Instant, limit int) (n int, err error) {
	if limit <= 0 || t.err != nil {
		return 0, t.err
	}
	for _, s := range purgesOfKernel {
		t.add("purge", step{stmt: s, each: func(r *row) error {
			n += int(r.int())
			return nil
		}}, instantOf(before), limitOf(limit))
	}
	err = t.send("purge")
	t.wrote = t.wrote || n > 0
	return n, err
}
