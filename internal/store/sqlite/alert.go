package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
)

const (
	alertColumns = "id, kind, subject, tenant, message, raised_at, cleared_at, count, acknowledged_at, acknowledged_by"
	selectAlert  = "select " + alertColumns + " from alert"
	// Only the id's conflict is a change: a second open alert about one subject must not take the place of the first.
	saveAlert = "insert into alert (" + alertColumns + ") values (?, ?, ?, ?, ?, ?, ?, ?, 0, null)" +
		" on conflict (id) do update set kind = excluded.kind, subject = excluded.subject, tenant = excluded.tenant," +
		" message = excluded.message, raised_at = excluded.raised_at, cleared_at = excluded.cleared_at," +
		" count = excluded.count"
	// The first who acknowledges an alert is remembered.
	acknowledgeAlert = "update alert set acknowledged_at = ?, acknowledged_by = ? where id = ? and acknowledged_at = 0"
)

func bindAlert(a *args, al *lessor.Alert) {
	a.id(al.ID.UUID)
	a.text(string(al.Kind))
	a.text(al.Subject)
	a.id(al.TenantID.UUID)
	a.text(al.Message)
	a.instant(al.RaisedAt)
	a.instant(al.ClearedAt)
	a.int(al.Count)
}

func readAlert(r *row) lessor.Alert {
	return lessor.Alert{
		ID:             lessor.AlertID{UUID: r.id()},
		Kind:           lessor.AlertKind(r.text()),
		Subject:        r.text(),
		TenantID:       lessor.TenantID{UUID: r.id()},
		Message:        r.text(),
		RaisedAt:       r.instant(),
		ClearedAt:      r.instant(),
		Count:          r.int(),
		AcknowledgedAt: r.instant(),
		AcknowledgedBy: r.textOrNil(),
	}
}

// SaveAlerts implements scheduler.KernelTx. A second open alert of one kind about one subject of a tenant is scheduler.ErrBadCall.
func (t *tx) SaveAlerts(_ context.Context, as []lessor.Alert) error {
	return t.do("save alerts", func() error {
		for i := range as {
			if err := query(t.conn, saveAlert, func(a *args) { bindAlert(a, &as[i]) }, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// AcknowledgeAlert implements scheduler.KernelTx.
func (t *tx) AcknowledgeAlert(_ context.Context, id lessor.AlertID, by string, at lessor.Instant) error {
	return t.do("acknowledge an alert", func() error {
		return query(t.conn, acknowledgeAlert, func(a *args) {
			a.instant(at)
			a.text(by)
			a.id(id.UUID)
		}, nil)
	})
}

// Alert implements scheduler.KernelView.
func (v *view) Alert(ctx context.Context, id lessor.AlertID) (found *lessor.Alert, err error) {
	err = query(v.conn, selectAlert+" where id = ?", func(a *args) { a.id(id.UUID) }, func(r *row) error {
		found = new(readAlert(r))
		return nil
	})
	return found, readFault(ctx, "read an alert", err)
}

// OpenAlert implements scheduler.KernelView.
func (v *view) OpenAlert(ctx context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID) (open *lessor.Alert, err error) {
	err = query(v.conn, selectAlert+" where cleared_at = 0 and kind = ? and subject = ? and tenant = ?",
		func(a *args) {
			a.text(string(kind))
			a.text(subject)
			a.id(tenant.UUID)
		},
		func(r *row) error {
			open = new(readAlert(r))
			return nil
		})
	return open, readFault(ctx, "read the open alert", err)
}

// AlertList implements scheduler.KernelView.
func (v *view) AlertList(ctx context.Context, q scheduler.AlertQuery) (as []lessor.Alert, err error) {
	w := &where{}
	if q.Open {
		w.and("cleared_at = 0", nil)
	}
	if q.Tenant != nil {
		w.and("tenant = ?", func(a *args) { a.id(q.Tenant.UUID) })
	}
	w.and("id < +?", func(a *args) { bindBefore(a, q.After) })
	err = v.page(selectAlert, w, "id desc", q.Limit, func(r *row) { as = append(as, readAlert(r)) })
	return as, readFault(ctx, "list alerts", err)
}
