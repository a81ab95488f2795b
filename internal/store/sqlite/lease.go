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
		" issued_at, granted_ttl_ms, taker, token, bound"
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
	a.textOrNull(h.Taker)
	a.idOrNull(h.Token.UUID)
	a.flag(h.Bound)
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
		Taker:       r.text(),
		Token:       lessor.TokenID{UUID: r.id()},
		Bound:       r.flag(),
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
		if found[ref] != nil {
			continue // asked for twice
		}
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
func (v *view) LeaseList(ctx context.Context, q scheduler.LeaseQuery) (list []scheduler.ListedLease, err error) {
	w := grantedBefore(q.After)
	if q.Worker != "" {
		w.and("worker = ?", func(a *args) { a.text(q.Worker) })
	}
	if q.Tenant != nil {
		w.and("+tenant = ?", func(a *args) { a.id(q.Tenant.UUID) })
	}
	if q.Token != nil {
		w.and("token = ?", func(a *args) { a.id(q.Token.UUID) })
	}
	err = v.page("select "+leaseColumns+" from "+leaseTables, w, "lease.n desc", q.Limit, func(r *row) {
		list = append(list, listedLease(readLease(r)))
	})
	return list, readFault(ctx, "list leases", err)
}

// LockList implements scheduler.KernelView.
func (v *view) LockList(ctx context.Context, q scheduler.LockQuery) (list []scheduler.ListedLease, err error) {
	w := grantedBefore(q.After)
	w.and("lock_key is not null", nil)
	if q.Tenant != nil {
		w.and("+tenant = ?", func(a *args) { a.id(q.Tenant.UUID) }) // lease_locked is in order, lease_lock would be sorted
	}
	err = v.page("select "+leaseColumns+" from "+leaseTables, w, "lease.n desc", q.Limit, func(r *row) {
		list = append(list, listedLease(readLease(r)))
	})
	return list, readFault(ctx, "list locks", err)
}

// listedLease is a lease with its place in a list: that of its number.
func listedLease(h *kept) scheduler.ListedLease {
	return scheduler.ListedLease{Held: &h.Held, Place: scheduler.LeasePlace{B: h.n}}
}

// grantedBefore begins the conditions of a list that goes on after a place; nil begins with the newest.
func grantedBefore(after *scheduler.LeasePlace) *where {
	n := int64(math.MaxInt64)
	if after != nil {
		n = after.B
	}
	w := &where{}
	w.and("lease.n < +?", func(a *args) { a.int(n) })
	return w
}
