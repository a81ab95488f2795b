package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

var (
	alertColumns = row.Columns(row.Alert)
	selectAlert  = "select " + row.Columns(row.WholeAlert) + " from alert"
	// Only a conflict of ids is a change: a second open alert about one subject must not replace the first.
	saveAlert = insertOne("insert into alert", alertColumns) +
		" on conflict (id) do update set " + excluded(alertColumns)
	openAlert = selectAlert + " where cleared_at = 0 and kind = ? and subject = ? and tenant = ?"
)

// acknowledgeAlert keeps the first acknowledgement.
const acknowledgeAlert = "update alert set acknowledged_at = ?, acknowledged_by = ?" +
	" where id = ? and acknowledged_at = 0"

// SaveAlerts implements scheduler.Tx. A second open alert of one kind about one subject of a tenant is
// scheduler.ErrBadCall.
func (t *tx) SaveAlerts(_ context.Context, as []lessor.Alert) error {
	return t.run("save alerts", saveAlert, len(as), func(i int, a *args) { row.Alert(row.Write(a), &as[i]) })
}

// AcknowledgeAlert implements scheduler.Tx.
func (t *tx) AcknowledgeAlert(_ context.Context, id lessor.AlertID, by string, at lessor.Instant) error {
	return t.runOnce("acknowledge an alert", acknowledgeAlert, func(a *args) {
		a.instant(at)
		a.Text(by)
		a.ID(id.UUID)
	})
}

// Alert implements scheduler.View.
func (v *view) Alert(ctx context.Context, id lessor.AlertID) (*lessor.Alert, error) {
	found, err := find(v.conn, selectAlert+" where id = ?", func(a *args) { a.ID(id.UUID) }, row.WholeAlert)
	return found, readFault(ctx, "read an alert", err)
}

// OpenAlert implements scheduler.View.
func (v *view) OpenAlert(
	ctx context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID,
) (*lessor.Alert, error) {
	open, err := find(v.conn, openAlert, func(a *args) {
		a.Text(string(kind))
		a.Text(subject)
		a.ID(tenant.UUID)
	}, row.WholeAlert)
	return open, readFault(ctx, "read the open alert", err)
}

// AlertList implements scheduler.View.
func (v *view) AlertList(ctx context.Context, q scheduler.AlertQuery) ([]lessor.Alert, error) {
	w := &where{}
	if q.Open {
		w.and("cleared_at = 0", nil)
	}
	if q.Tenant != nil {
		w.and("tenant = ?", func(a *args) { a.ID(q.Tenant.UUID) })
	}
	w.and("id < +?", func(a *args) { bindBefore(a, q.After) })
	as, err := page(v, selectAlert, w, "id desc", q.Limit, row.WholeAlert)
	return as, readFault(ctx, "list alerts", err)
}

var auditColumns = row.Columns(row.Audited)

// SaveAudit implements scheduler.Tx.
func (t *tx) SaveAudit(_ context.Context, es []lessor.Audited) error {
	return insert(t, "save audit", &t.w.audit, es, row.Audited)
}

// AuditList implements scheduler.View.
func (v *view) AuditList(ctx context.Context, q scheduler.AuditQuery) ([]lessor.Audited, error) {
	w := &where{}
	if q.Actor != "" {
		w.and("actor = ?", func(a *args) { a.Text(q.Actor) })
	}
	if q.Object != "" {
		w.and("object = ?", func(a *args) { a.Text(q.Object) })
	}
	w.and("id < +?", func(a *args) { bindBefore(a, q.After) })
	es, err := page(v, "select "+auditColumns+" from audit", w, "id desc", q.Limit, row.Audited)
	return es, readFault(ctx, "list the audit", err)
}
