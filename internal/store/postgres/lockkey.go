package postgres

import (
	"context"

	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

var listLocks = variants("select "+leaseColumns+" from lease where lock_key is not null and (issued_at, seq) < ($2::bigint, $3::bigint)",
	" order by issued_at desc, seq desc limit $4::bigint", filter{"tenant = ", "uuid"})

// LockList implements scheduler.KernelView.
func (v *view) LockList(_ context.Context, q scheduler.LockQuery) (list []scheduler.ListedLease, err error) {
	at, seq := grantedBefore(q.After)
	err = v.page("list locks", listLocks, [][]byte{wire.IDOrNil(q.Tenant)}, func(r *wire.Row) { list = append(list, listedLease(readLease(r))) },
		at, seq, wire.Limit(q.Limit))
	return list, err
}
