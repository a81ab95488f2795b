package sqlite

import (
	"context"
	"math"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	heldColumns = "id, " + turnColumns + ", tenant, lock_key, units, worker, request_id, workspace_id, max_runtime_ms," +
		" issued_at, granted_ttl_ms"
	grantColumns = "n, " + heldColumns
	leaseColumns = "lease.n, " + heldColumns + ", beat.n, " + changedColumns
	leaseTables  = "lease left join beat on beat.n = lease.n"
)

func bindLease(a *args, h *kept) {
	a.int(h.n)
	a.id(h.ID.UUID)
	bindTurn(a, &h.Turn)
	a.id(h.Tenant.UUID)
	a.textOrNull(h.LockKey)
	a.int(int64(h.Units))
	a.text(h.Worker)
	a.textOrNull(h.RequestID)
	a.textOrNull(h.WorkspaceID)
	a.millis(h.MaxRuntime)
	a.instant(h.IssuedAt)
	a.millis(h.TTL)
}

func readLease(r *row) *kept {
	h := &kept{n: r.int(), Held: rules.Held{
		ID:          lessor.LeaseID{UUID: r.id()},
		Turn:        readTurn(r),
		Tenant:      lessor.TenantID{UUID: r.id()},
		LockKey:     r.text(),
		Units:       int(r.int()),
		Worker:      r.text(),
		RequestID:   r.text(),
		WorkspaceID: r.text(),
		MaxRuntime:  r.millis(),
		IssuedAt:    r.instant(),
		TTL:         r.millis(),
	}}
	readBeat(r, h)
	return h
}

// Leases implements scheduler.Tx. The leases are copies.
func (t *tx) Leases(_ context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]*rules.Held, error) {
	if t.err != nil {
		return nil, t.err
	}
	leases := make(map[lessor.LeaseID]*rules.Held, len(ids))
	copies := make([]rules.Held, 0, len(ids))
	for _, id := range ids {
		if h := t.store.leases.held[id]; h != nil && leases[id] == nil {
			copies = append(copies, h.Held)
			leases[id] = &copies[len(copies)-1]
		}
	}
	return leases, nil
}

// Requested implements scheduler.Tx. The leases are copies, in the order they were granted.
func (t *tx) Requested(_ context.Context, refs []scheduler.RequestRef) (map[scheduler.RequestRef][]*rules.Held, error) {
	if t.err != nil {
		return nil, t.err
	}
	found := make(map[scheduler.RequestRef][]*rules.Held)
	for _, ref := range refs {
		for _, h := range t.store.leases.requests[ref] {
			found[ref] = append(found[ref], new(h.Held))
		}
	}
	return found, nil
}

// EachLease implements scheduler.View.
func (v *view) EachLease(ctx context.Context, fn func(*rules.Held) error) error {
	return readFault(ctx, "read leases", v.eachLeaseRow(func(h *kept) error { return fn(&h.Held) }))
}

func (v *view) eachLeaseRow(fn func(*kept) error) error {
	return query(v.conn, "select "+leaseColumns+" from "+leaseTables+" order by lease.n", nil, func(r *row) error {
		return fn(readLease(r))
	})
}

// EachLease implements scheduler.Tx. The leases are copies.
func (t *tx) EachLease(_ context.Context, fn func(*rules.Held) error) error {
	if t.err != nil {
		return t.err
	}
	for _, h := range t.store.leases.held {
		if err := fn(new(h.Held)); err != nil {
			return err
		}
	}
	return nil
}

// LeaseList implements scheduler.View, in the order of grants.
func (v *view) LeaseList(ctx context.Context, q scheduler.LeaseQuery) ([]*rules.Held, error) {
	before, err := v.grantedBefore(q.After)
	if err != nil {
		return nil, readFault(ctx, "list leases", err)
	}
	text := "select " + leaseColumns + " from " + leaseTables + " where lease.n < +?"
	if q.Worker != "" {
		text += " and worker = ?"
	}
	if q.Tenant != nil {
		text += " and tenant = ?"
	}
	text += " order by lease.n desc limit +?"
	var held []*rules.Held
	err = query(v.conn, text,
		func(a *args) {
			a.int(before)
			if q.Worker != "" {
				a.text(q.Worker)
			}
			if q.Tenant != nil {
				a.id(q.Tenant.UUID)
			}
			a.int(int64(q.Limit))
		},
		func(r *row) error {
			held = append(held, &readLease(r).Held)
			return nil
		})
	return held, readFault(ctx, "list leases", err)
}

// LockList implements scheduler.KernelView.
func (v *view) LockList(ctx context.Context, q scheduler.LockQuery) (held []*rules.Held, err error) {
	before, err := v.grantedBefore(q.After)
	if err != nil {
		return nil, readFault(ctx, "list locks", err)
	}
	w := &where{}
	w.and("lease.n < +?", func(a *args) { a.int(before) })
	w.and("lock_key is not null", nil)
	if q.Tenant != nil {
		w.and("+tenant = ?", func(a *args) { a.id(q.Tenant.UUID) }) // lease_locked is in order, lease_lock would be sorted
	}
	err = v.page("select "+leaseColumns+" from "+leaseTables, w, "lease.n desc", q.Limit, func(r *row) {
		held = append(held, &readLease(r).Held)
	})
	return held, readFault(ctx, "list locks", err)
}

// Both read live leases until they have found one: leases have no index by id, which every grant would have to write.
const (
	findLease  = "select n from lease where id = ? order by n desc limit 1"
	findBefore = "select n + 1 from lease where id < +? order by n desc limit 1"
)

// grantedBefore returns the bound of a list that goes on after a lease. If that has ended since, the list goes on with the
// newest lease of a smaller id: ids rise with the grants, but for steps of the clock.
func (v *view) grantedBefore(after *lessor.LeaseID) (n int64, err error) {
	if after == nil {
		return math.MaxInt64, nil
	}
	for _, text := range []string{findLease, findBefore} {
		err = query(v.conn, text, func(a *args) { a.id(after.UUID) }, func(r *row) error {
			n = r.int()
			return nil
		})
		if n != 0 || err != nil {
			break
		}
	}
	return n, err
}
