package sqlite

import (
	"cmp"
	"context"
	"math"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

const leaseTables = "lease left join beat on beat.n = lease.n"

var (
	grantColumns = row.Columns(grantRow)
	beatColumns  = row.Columns(beatRow)
	leaseColumns = row.Of("lease", grantColumns) + ", " + row.Of("beat", beatColumns)
	selectLease  = "select " + leaseColumns + " from " + leaseTables
	listedLease  = "select (select type from lane where lane.id = lease.lane), " + leaseColumns +
		" from " + leaseTables
	workspaceLeases = selectLease + " where workspace_id = ?"
)

// grantRow is a row of lease: a lease as it was granted.
func grantRow(c *row.Codec, h *liveLease) {
	row.Integer(c, "n", &h.n)
	row.Lease(c, &h.Held)
	row.Millis(c, "granted_ttl_ms", &h.TTL)
}

// beatRow is a row of beat: what has changed in a lease since it was granted.
func beatRow(c *row.Codec, h *liveLease) {
	row.Integer(c, "n", &h.n)
	row.Beat(c, &h.Held)
}

// readLease reads a lease and its row in beat, if there is one.
func readLease(r *result) *liveLease {
	h := &liveLease{}
	grantRow(r.codec, h)
	if h.hasBeat = !r.Null(); h.hasBeat {
		beatRow(r.codec, h)
	} else {
		h.ExpiresAt, h.BeatAt = h.IssuedAt.Add(h.TTL), h.IssuedAt
	}
	return h
}

// asGranted reports whether a lease is as every grant makes it, so that it needs no row in beat.
func asGranted(h *rules.Held) bool {
	return h.ExpiresAt == h.IssuedAt.Add(h.TTL) && h.BeatAt == h.IssuedAt &&
		h.FirstBeatAt == 0 && h.CancelAt == 0 && h.WatchUntil == 0 && h.Reattached == 0 &&
		!h.Journaled()
}

// Leases implements scheduler.Tx. The leases are copies.
func (t *tx) Leases(_ context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]*rules.Held, error) {
	if t.err != nil {
		return nil, t.err
	}
	leases := make(map[lessor.LeaseID]*rules.Held, len(ids))
	copies := make([]rules.Held, 0, len(ids))
	for _, id := range ids {
		if h := t.store.leases.live[id]; h != nil && leases[id] == nil {
			copies = append(copies, h.Held)
			leases[id] = &copies[len(copies)-1]
		}
	}
	return leases, nil
}

// Requested implements scheduler.Tx. The leases are copies, in the order in which they were granted.
func (t *tx) Requested(
	_ context.Context, refs []scheduler.RequestRef,
) (map[scheduler.RequestRef][]*rules.Held, error) {
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

// SaveLeases implements scheduler.Tx. A lease that is not live is scheduler.ErrMoved.
func (t *tx) SaveLeases(_ context.Context, held []*rules.Held) error {
	return t.do("save leases", func() error {
		t.changed = t.changed[:0]
		for _, h := range held {
			now := t.store.leases.change(h)
			if now == nil {
				return scheduler.ErrMoved
			}
			t.changed = append(t.changed, now)
		}
		// In the order of their keys the next row is mostly beside the last one.
		slices.SortFunc(t.changed, func(a, b *liveLease) int { return cmp.Compare(a.n, b.n) })
		return t.saveBeats()
	})
}

func (t *tx) saveBeats() error {
	return t.w.beat.insert(len(t.changed), func(i int, c *row.Codec) { beatRow(c, t.changed[i]) })
}

// EachLease implements scheduler.View.
func (v *view) EachLease(ctx context.Context, fn func(*rules.Held) error) error {
	return readFault(ctx, "read leases", v.eachLeaseRow(func(h *liveLease) error { return fn(&h.Held) }))
}

func (v *view) eachLeaseRow(fn func(*liveLease) error) error {
	return query(v.conn, selectLease+" order by lease.n", nil, func(r *result) error { return fn(readLease(r)) })
}

// EachLease implements scheduler.Tx. The leases are copies.
func (t *tx) EachLease(_ context.Context, fn func(*rules.Held) error) error {
	if t.err != nil {
		return t.err
	}
	for _, h := range t.store.leases.live {
		if err := fn(new(h.Held)); err != nil {
			return err
		}
	}
	return nil
}

// WorkspaceLeases implements scheduler.View.
func (v *view) WorkspaceLeases(ctx context.Context, workspace string) (held []*rules.Held, err error) {
	err = query(v.conn, workspaceLeases,
		func(a *args) { a.Text(workspace) },
		func(r *result) error {
			held = append(held, &readLease(r).Held)
			return nil
		})
	return held, readFault(ctx, "read leases of a workspace", err)
}

// LeaseList implements scheduler.View, in the order of grants.
func (v *view) LeaseList(ctx context.Context, q scheduler.LeaseQuery) ([]scheduler.ListedLease, error) {
	w := grantedBefore(q.After)
	if q.Worker != "" {
		w.and("worker = ?", func(a *args) { a.Text(q.Worker) })
	}
	if q.Token != nil {
		w.and("token = ?", func(a *args) { a.ID(q.Token.UUID) })
	}
	list, err := v.leasePage(w, q.Tenant, q.Limit)
	return list, readFault(ctx, "list leases", err)
}

// LockList implements scheduler.View.
func (v *view) LockList(ctx context.Context, q scheduler.LockQuery) ([]scheduler.ListedLease, error) {
	w := grantedBefore(q.After)
	w.and("lock_key is not null", nil)
	list, err := v.leasePage(w, q.Tenant, q.Limit)
	return list, readFault(ctx, "list locks", err)
}

// leasePage reads a page of leases. The place of one in a list is its number. No index is used for the tenant: that of
// lease_lock would have to be sorted, and lease_locked is in order.
func (v *view) leasePage(w *where, tenant *lessor.TenantID, limit int) (list []scheduler.ListedLease, err error) {
	if tenant != nil {
		w.and("+tenant = ?", func(a *args) { a.ID(tenant.UUID) })
	}
	err = query(v.conn, w.page(listedLease, "lease.n desc"), w.bind(limit), func(r *result) error {
		kind := r.Text()
		h := readLease(r)
		list = append(list, scheduler.ListedLease{Held: &h.Held, Type: kind, Place: scheduler.LeasePlace{B: h.n}})
		return nil
	})
	return list, err
}

// grantedBefore begins the conditions of a list that continues after a place; nil begins with the newest.
func grantedBefore(after *scheduler.LeasePlace) *where {
	n := int64(math.MaxInt64)
	if after != nil {
		n = after.B
	}
	w := &where{}
	w.and("lease.n < +?", func(a *args) { a.Int(n) })
	return w
}
