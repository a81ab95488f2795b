package postgres

import (
	"context"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

var listLocks = variants("select "+leaseColumns+" from lease where lock_key is not null and (tenant, lock_key) > ($2::uuid, $3::text)",
	" order by tenant, lock_key limit $4::bigint", filter{"tenant = ", "uuid"})

// LockList implements scheduler.KernelView.
func (v *view) LockList(_ context.Context, q scheduler.LockQuery) (held []*rules.Held, err error) {
	var after scheduler.LockName // before all: no key is empty
	if q.After != nil {
		after = *q.After
	}
	err = v.page("list locks", listLocks, [][]byte{idOrNil(q.Tenant)}, func(r *row) { held = append(held, readLease(r)) },
		uuidOf(after.Tenant.UUID), textOf(after.Key), limitOf(q.Limit))
	return held, err
}
