package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// Locks lists held locks, the last that was taken first, and the cursor of the next page ("" at the end).
func (s *Scheduler) Locks(ctx context.Context, c Caller, asked *lessor.TenantID, limit int, after string) ([]lessor.Lock, string, error) {
	if err := rules.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	q := LockQuery{Limit: limit + 1}
	var err error
	if q.Tenant, err = c.within(asked); err != nil {
		return nil, "", err
	}
	if q.After, err = leaseCursor(after); err != nil {
		return nil, "", err
	}
	type lock struct {
		lessor.Lock
		lease lessor.LeaseID
	}
	page, next, err := pageOf(ctx, s, "list locks", limit, func(l lock) string { return l.lease.String() }, func(v View) ([]lock, error) {
		held, err := v.LockList(ctx, q)
		return each(held, func(h *rules.Held) lock {
			return lock{lessor.Lock{
				LockKey: h.LockKey, TenantID: h.Tenant, LockedBy: h.Worker, LockedUntil: rules.Effective(h, v.Now(), servingOf(v)), RunID: h.Turn.Job,
			}, h.ID}
		}), err
	})
	return each(page, func(l lock) lessor.Lock { return l.Lock }), next, err
}
