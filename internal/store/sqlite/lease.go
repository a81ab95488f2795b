package sqlite

import (
	"context"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	leaseColumns = "id, " + turnColumns + ", tenant, lock_key, units, worker, request_id, workspace_id, ttl_ms," +
		" max_runtime_ms, issued_at, expires_at, first_beat_at, beat_at, cancel_at, watch_until, reattached"
	saveLease = "update lease set expires_at = ?, first_beat_at = ?, beat_at = ?, ttl_ms = ?, cancel_at = ?, watch_until = ?," +
		" reattached = ? where seq = ? and id = ?"
)

func bindLease(a *args, h *rules.Held) {
	a.id(h.ID.UUID)
	bindTurn(a, &h.Turn)
	a.id(h.Tenant.UUID)
	a.textOrNull(h.LockKey)
	a.int(int64(h.Units))
	a.text(h.Worker)
	a.textOrNull(h.RequestID)
	a.textOrNull(h.WorkspaceID)
	a.millis(h.TTL)
	a.millis(h.MaxRuntime)
	a.instant(h.IssuedAt)
	a.instant(h.ExpiresAt)
	a.instant(h.FirstBeatAt)
	a.instant(h.BeatAt)
	a.instant(h.CancelAt)
	a.instant(h.WatchUntil)
	a.flag(h.Reattached)
}

func readLease(r *row) *rules.Held {
	return &rules.Held{
		ID:          lessor.LeaseID{UUID: r.id()},
		Turn:        readTurn(r),
		Tenant:      lessor.TenantID{UUID: r.id()},
		LockKey:     r.text(),
		Units:       int(r.int()),
		Worker:      r.text(),
		RequestID:   r.text(),
		WorkspaceID: r.text(),
		TTL:         r.millis(),
		MaxRuntime:  r.millis(),
		IssuedAt:    r.instant(),
		ExpiresAt:   r.instant(),
		FirstBeatAt: r.instant(),
		BeatAt:      r.instant(),
		CancelAt:    r.instant(),
		WatchUntil:  r.instant(),
		Reattached:  r.flag(),
	}
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
			copies = append(copies, *h)
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
		held := slices.Clone(t.store.leases.requests[ref])
		if len(held) == 0 {
			continue
		}
		for i, h := range held {
			held[i] = new(*h)
		}
		found[ref] = held
	}
	return found, nil
}

// SaveLeases implements scheduler.Tx. A lease that is not live is scheduler.ErrMoved.
func (t *tx) SaveLeases(_ context.Context, held []*rules.Held) error {
	return t.do("save leases", func() error {
		stmt := t.w.saveLease
		for _, h := range held {
			kept := t.store.leases.change(h)
			if kept == nil {
				return scheduler.ErrMoved
			}
			a := args{stmt: stmt}
			a.instant(h.ExpiresAt)
			a.instant(h.FirstBeatAt)
			a.instant(h.BeatAt)
			a.millis(h.TTL)
			a.instant(h.CancelAt)
			a.instant(h.WatchUntil)
			a.flag(h.Reattached)
			a.int(kept.Turn.Seq)
			a.id(h.ID.UUID)
			if err := t.one(stmt); err != nil {
				return err
			}
		}
		return nil
	})
}

// EachLease implements scheduler.View.
func (v *view) EachLease(ctx context.Context, fn func(*rules.Held) error) error {
	return readFault(ctx, "read leases", v.eachLeaseRow(fn))
}

func (v *view) eachLeaseRow(fn func(*rules.Held) error) error {
	return query(v.conn, "select "+leaseColumns+" from lease order by id", nil, func(r *row) error {
		return fn(readLease(r))
	})
}

// EachLease implements scheduler.Tx. The leases are copies.
func (t *tx) EachLease(_ context.Context, fn func(*rules.Held) error) error {
	if t.err != nil {
		return t.err
	}
	for _, h := range t.store.leases.held {
		if err := fn(new(*h)); err != nil {
			return err
		}
	}
	return nil
}

// LeaseList implements scheduler.View. Lease ids rise with time, so the newest have the largest.
func (v *view) LeaseList(ctx context.Context, q scheduler.LeaseQuery) ([]*rules.Held, error) {
	text := "select " + leaseColumns + " from lease where id < +?"
	if q.Worker != "" {
		text += " and worker = ?"
	}
	if q.Tenant != nil {
		text += " and tenant = ?"
	}
	text += " order by id desc limit +?"
	var held []*rules.Held
	err := query(v.conn, text,
		func(a *args) {
			bindBefore(a, q.After)
			if q.Worker != "" {
				a.text(q.Worker)
			}
			if q.Tenant != nil {
				a.id(q.Tenant.UUID)
			}
			a.int(int64(q.Limit))
		},
		func(r *row) error {
			held = append(held, readLease(r))
			return nil
		})
	return held, readFault(ctx, "list leases", err)
}

// bindBefore binds the upper bound of a list: the id of the last page's end, or more than any id.
func bindBefore(a *args, after *lessor.LeaseID) {
	if after != nil {
		a.id(after.UUID)
		return
	}
	a.blob(afterAll[:])
}

// afterAll is larger than every id, being longer than the largest.
var afterAll = [17]byte{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
}
