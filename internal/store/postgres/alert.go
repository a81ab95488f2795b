package postgres

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

const (
	alertColumns = "id, kind, subject, tenant, message, raised_at, cleared_at, count, acknowledged_at, acknowledged_by"
	savedAlert   = "id, kind, subject, tenant, message, raised_at, cleared_at, count"
	alertTypes   = "uttutiii"
	selectAlert  = "select " + alertColumns + " from alert"
)

var (
	saveAlerts = wire.SQL("insert into alert (" + savedAlert + ") " + wire.Unnest(alertTypes, savedAlert) + " on conflict (id) do update set " + wire.Excluded(savedAlert))
	// The first who acknowledges an alert is remembered.
	acknowledgeAlert = wire.SQL("update alert set acknowledged_at = $2::bigint, acknowledged_by = $3::text where id = $1::uuid and acknowledged_at = 0")
	readOneAlert     = wire.SQL(selectAlert + " where id = $1::uuid")
	openAlert        = wire.SQL(selectAlert + " where cleared_at = 0 and kind = $1::text and subject = $2::text and tenant = $3::uuid")
	listAlerts       = variants(selectAlert+" where id < $3::uuid", " order by id desc limit $4::bigint",
		filter{"tenant = ", "uuid"}, filter{"cleared_at = 0 and ", "boolean"})
)

func bindAlert(r *wire.Rows, a *lessor.Alert) {
	r.ID(a.ID.UUID)
	r.Text(string(a.Kind))
	r.Text(a.Subject)
	r.ID(a.TenantID.UUID)
	r.Text(a.Message)
	r.Instant(a.RaisedAt)
	r.Instant(a.ClearedAt)
	r.Int(a.Count)
}

func readAlert(r *wire.Row) lessor.Alert {
	return lessor.Alert{
		ID:             lessor.AlertID{UUID: r.ID()},
		Kind:           lessor.AlertKind(r.Text()),
		Subject:        r.Text(),
		TenantID:       lessor.TenantID{UUID: r.ID()},
		Message:        r.Text(),
		RaisedAt:       r.Instant(),
		ClearedAt:      r.Instant(),
		Count:          r.Int(),
		AcknowledgedAt: r.Instant(),
		AcknowledgedBy: r.TextOrNil(),
	}
}

// SaveAlerts implements scheduler.KernelTx. A second open alert of one kind about one subject of a tenant is scheduler.ErrBadCall.
func (t *tx) SaveAlerts(_ context.Context, as []lessor.Alert) error {
	if len(as) == 0 {
		return t.err
	}
	r := t.scratch.Reset()
	for i := range as {
		r.Next()
		bindAlert(r, &as[i])
	}
	return t.write("save alerts", wire.Step{Stmt: saveAlerts}, r.Params()...)
}

// AcknowledgeAlert implements scheduler.KernelTx.
func (t *tx) AcknowledgeAlert(_ context.Context, id lessor.AlertID, by string, at lessor.Instant) error {
	return t.write("acknowledge an alert", wire.Step{Stmt: acknowledgeAlert}, wire.ID(id.UUID), wire.Instant(at), wire.Text(by))
}

// Alert implements scheduler.KernelView.
func (v *view) Alert(_ context.Context, id lessor.AlertID) (found *lessor.Alert, err error) {
	err = v.query("read an alert", readOneAlert, func(r *wire.Row) error {
		found = new(readAlert(r))
		return nil
	}, wire.ID(id.UUID))
	return found, err
}

// OpenAlert implements scheduler.KernelView.
func (v *view) OpenAlert(_ context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID) (open *lessor.Alert, err error) {
	err = v.query("read the open alert", openAlert, func(r *wire.Row) error {
		open = new(readAlert(r))
		return nil
	}, wire.Text(string(kind)), wire.Text(subject), wire.ID(tenant.UUID))
	return open, err
}

// AlertList implements scheduler.KernelView.
func (v *view) AlertList(_ context.Context, q scheduler.AlertQuery) (as []lessor.Alert, err error) {
	filters := [][]byte{wire.IDOrNil(q.Tenant), nil}
	if q.Open {
		filters[1] = wire.Flag(true)
	}
	err = v.page("list alerts", listAlerts, filters, func(r *wire.Row) { as = append(as, readAlert(r)) }, before(q.After), wire.Limit(q.Limit))
	return as, err
}
