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
	if q.After, err = s.leasePlace(after); err != nil {
		return nil, "", err
	}
	type lock struct {
		lessor.Lock
		place LeasePlace
	}
	page, next, err := pageOf(ctx, s, "list locks", limit, func(l lock) string { return s.store.Seal().Cursor(l.place.A, l.place.B) }, func(v View) ([]lock, error) {
		list, err := v.LockList(ctx, q)
		return each(list, func(h ListedLease) lock {
			return lock{lessor.Lock{
				LockKey: h.LockKey, TenantID: h.Tenant, LockedBy: h.Worker, LockedUntil: rules.Effective(h.Held, v.Now(), servingOf(v)), RunID: h.Turn.Job,
			}, h.Place}
		}), err
	})
	return each(page, func(l lock) lessor.Lock { return l.Lock }), next, err
}
