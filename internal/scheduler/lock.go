package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// Locks lists held locks by tenant and key, and the cursor of the next page ("" at the end).
func (s *Scheduler) Locks(ctx context.Context, c Caller, asked *lessor.TenantID, limit int, after string) ([]lessor.Lock, string, error) {
	if err := rules.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	q := LockQuery{Limit: limit + 1}
	var err error
	if q.Tenant, err = c.within(asked); err != nil {
		return nil, "", err
	}
	if q.After, err = lockCursor(after); err != nil {
		return nil, "", err
	}
	locks := []lessor.Lock{}
	err = s.view(ctx, "list locks", func(v View) error {
		held, err := v.LockList(ctx, q)
		for _, h := range held {
			locks = append(locks, lessor.Lock{
				LockKey: h.LockKey, TenantID: h.Tenant, LockedBy: h.Worker, LockedUntil: rules.Effective(h, v.Now(), v.Serving()), RunID: h.Turn.Job,
			})
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	page, more := cut(locks, limit)
	next := ""
	if more {
		last := page[len(page)-1]
		next = last.TenantID.String() + last.LockKey
	}
	return page, next, nil
}

// lockCursor reads a cursor of Locks: a tenant's id and a lock key.
func lockCursor(s string) (*LockName, error) {
	if s == "" {
		return nil, nil
	}
	const id = 36 // characters of a uuid
	if len(s) <= id {
		return nil, rules.BadCursor()
	}
	u, err := lessor.ParseUUID(s[:id])
	if err != nil {
		return nil, rules.BadCursor()
	}
	return &LockName{Tenant: lessor.TenantID{UUID: u}, Key: s[id:]}, nil
}
