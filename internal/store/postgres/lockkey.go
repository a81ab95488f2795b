package postgres

import (
	"context"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

var listLocks = variants("select "+leaseColumns+" from lease where lock_key is not null and id < $2::uuid",
	" order by id desc limit $3::bigint", filter{"tenant = ", "uuid"})

// LockList implements scheduler.KernelView.
func (v *view) LockList(_ context.Context, q scheduler.LockQuery) (held []*rules.Held, err error) {
	err = v.page("list locks", listLocks, [][]byte{idOrNil(q.Tenant)}, func(r *row) { held = append(held, readLease(r)) },
		before(q.After), limitOf(q.Limit))
	return held, err
}
