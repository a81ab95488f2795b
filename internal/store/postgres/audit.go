package postgres

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

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
	return page(v, "list the audit", listAudit, [][]byte{wire.TextOrNil(q.Actor), wire.TextOrNil(q.Object)}, row.Audited,
		before(q.After), wire.Limit(q.Limit))
}
