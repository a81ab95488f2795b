package postgres

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
)

const (
	alertColumns = "id, kind, subject, tenant, message, raised_at, cleared_at, count, acknowledged_at, acknowledged_by"
	savedAlert   = "id, kind, subject, tenant, message, raised_at, cleared_at, count"
	alertTypes   = "uttutiii"
	selectAlert  = "select " + alertColumns + " from alert"
)

var (
	saveAlerts = sql("insert into alert (" + savedAlert + ") " + unnestAs(alertTypes, savedAlert) + " on conflict (id) do update set " + excluded(savedAlert))
	// The first who acknowledges an alert is remembered.
	acknowledgeAlert = sql("update alert set acknowledged_at = $2::bigint, acknowledged_by = $3::text where id = $1::uuid and acknowledged_at = 0")
	readOneAlert     = sql(selectAlert + " where id = $1::uuid")
	openAlert        = sql(selectAlert + " where cleared_at = 0 and kind = $1::text and subject = $2::text and tenant = $3::uuid")
	listAlerts       = variants(selectAlert+" where id < $3::uuid", " order by id desc limit $4::bigint",
		filter{"tenant = ", "uuid"}, filter{"cleared_at = 0 and ", "boolean"})
)

func bindAlert(r *rows, a *lessor.Alert) {
	r.id(a.ID.UUID)
	r.text(string(a.Kind))
	r.text(a.Subject)
	r.id(a.TenantID.UUID)
	r.text(a.Message)
	r.instant(a.RaisedAt)
	r.instant(a.ClearedAt)
	r.int(a.Count)
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
	if len(as) == 0 {
		return t.err
	}
	r := t.scratch.reset()
	for i := range as {
		r.row()
		bindAlert(r, &as[i])
	}
	return t.write("save alerts", step{stmt: saveAlerts}, r.params()...)
}

// AcknowledgeAlert implements scheduler.KernelTx.
func (t *tx) AcknowledgeAlert(_ context.Context, id lessor.AlertID, by string, at lessor.Instant) error {
	return t.write("acknowledge an alert", step{stmt: acknowledgeAlert}, uuidOf(id.UUID), instantOf(at), textOf(by))
}

// Alert implements scheduler.KernelView.
func (v *view) Alert(_ context.Context, id lessor.AlertID) (found *lessor.Alert, err error) {
	err = v.query("read an alert", readOneAlert, func(r *row) error {
		found = new(readAlert(r))
		return nil
	}, uuidOf(id.UUID))
	return found, err
}

// OpenAlert implements scheduler.KernelView.
func (v *view) OpenAlert(_ context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID) (open *lessor.Alert, err error) {
	err = v.query("read the open alert", openAlert, func(r *row) error {
		open = new(readAlert(r))
		return nil
	}, textOf(string(kind)), textOf(subject), uuidOf(tenant.UUID))
	return open, err
}

// AlertList implements scheduler.KernelView.
func (v *view) AlertList(_ context.Context, q scheduler.AlertQuery) (as []lessor.Alert, err error) {
	filters := [][]byte{idOrNil(q.Tenant), nil}
	if q.Open {
		filters[1] = boolOf(true)
	}
	err = v.page("list alerts", listAlerts, filters, func(r *row) { as = append(as, readAlert(r)) }, before(q.After), limitOf(q.Limit))
	return as, err
}
