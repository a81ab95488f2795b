package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

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
