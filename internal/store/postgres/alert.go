package postgres

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	alertColumns = row.Columns(row.WholeAlert)
	selectAlert  = "select " + alertColumns + " from alert"
	saveAlerts   = upsert("alert", "id", row.Alert)
	// acknowledgeAlert keeps the first acknowledgement.
	acknowledgeAlert = wire.SQL("update alert set acknowledged_at = $2::bigint, acknowledged_by = $3::text" +
		" where id = $1::uuid and acknowledged_at = 0")
	readOneAlert = wire.SQL(selectAlert + " where id = $1::uuid")
	openAlert    = wire.SQL(selectAlert + " where cleared_at = 0 and kind = $1::text and subject = $2::text" +
		" and tenant = $3::uuid")
	listAlerts = variants(selectAlert+" where id < $3::uuid", " order by id desc limit $4::bigint",
		filter{"tenant = ", "uuid"}, filter{"cleared_at = 0 and ", "boolean"})
)

// openAlerts is the index that allows one open alert of a kind about a subject.
const openAlerts = "alert_open"

// SaveAlerts implements scheduler.Tx. Another node may have raised a second open alert of one kind about one
// subject of a tenant: it is scheduler.ErrAgain.
func (t *tx) SaveAlerts(_ context.Context, as []lessor.Alert) error {
	return saveArrays(t, "save alerts", saveAlerts, as, row.Alert)
}

// AcknowledgeAlert implements scheduler.Tx.
func (t *tx) AcknowledgeAlert(_ context.Context, id lessor.AlertID, by string, at lessor.Instant) error {
	return t.write("acknowledge an alert", wire.Step{Stmt: acknowledgeAlert},
		wire.ID(id.UUID), wire.Instant(at), wire.Text(by))
}

// Alert implements scheduler.View.
func (v *view) Alert(_ context.Context, id lessor.AlertID) (*lessor.Alert, error) {
	return v.alert("read an alert", readOneAlert, wire.ID(id.UUID))
}

// OpenAlert implements scheduler.View.
func (v *view) OpenAlert(
	_ context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID,
) (*lessor.Alert, error) {
	return v.alert("read the open alert", openAlert, wire.Text(string(kind)), wire.Text(subject), wire.ID(tenant.UUID))
}

func (v *view) alert(verb string, s *wire.Statement, params ...[]byte) (found *lessor.Alert, err error) {
	err = v.query(verb, s, func(r *wire.Row) error {
		found = &lessor.Alert{}
		row.WholeAlert(decode(r), found)
		return nil
	}, params...)
	return found, err
}

// AlertList implements scheduler.View.
func (v *view) AlertList(_ context.Context, q scheduler.AlertQuery) ([]lessor.Alert, error) {
	filters := [][]byte{wire.IDOrNil(q.Tenant), nil}
	if q.Open {
		filters[1] = wire.Flag(true)
	}
	return page(v, "list alerts", listAlerts, filters, row.WholeAlert, before(q.After), wire.Limit(q.Limit))
}

var (
	auditColumns = row.Columns(row.Audited)
	insertAudit  = insertInto("audit", row.Audited)
	listAudit    = variants("select "+auditColumns+" from audit where id < $3::uuid",
		" order by id desc limit $4::bigint", filter{"actor = ", "text"}, filter{"object = ", "text"})
)

// SaveAudit implements scheduler.Tx.
func (t *tx) SaveAudit(_ context.Context, es []lessor.Audited) error {
	return save(t, "save audit", insertAudit, es, row.Audited)
}

// AuditList implements scheduler.View.
func (v *view) AuditList(_ context.Context, q scheduler.AuditQuery) ([]lessor.Audited, error) {
	filter := [][]byte{wire.TextOrNil(q.Actor), wire.TextOrNil(q.Object)}
	return page(v, "list the audit", listAudit, filter, row.Audited, before(q.After), wire.Limit(q.Limit))
}
