package postgres

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
)

const (
	auditColumns = "id, at, actor, action, object, trace_id, before, after"
	auditTypes   = "uittttyy"
)

var (
	insertAudit = insertAll("audit", auditColumns, auditTypes)
	listAudit   = variants("select "+auditColumns+" from audit where id < $3::uuid", " order by id desc limit $4::bigint",
		filter{"actor = ", "text"}, filter{"object = ", "text"})
)

func bindAudited(r *rows, e *lessor.Audited) {
	r.id(e.ID.UUID)
	r.instant(e.At)
	r.text(e.Actor)
	r.text(e.Action)
	r.text(e.Object)
	r.text(e.TraceID)
	r.bytesOrNull(e.Before)
	r.bytesOrNull(e.After)
}

func readAudited(r *row) lessor.Audited {
	return lessor.Audited{
		ID:      lessor.AuditID{UUID: r.id()},
		At:      r.instant(),
		Actor:   r.text(),
		Action:  r.text(),
		Object:  r.text(),
		TraceID: r.text(),
		Before:  r.bytes(),
		After:   r.bytes(),
	}
}

// SaveAudit implements scheduler.KernelTx.
func (t *tx) SaveAudit(_ context.Context, es []lessor.Audited) error {
	if len(es) == 0 {
		return t.err
	}
	r := t.scratch.reset()
	for i := range es {
		r.row()
		bindAudited(r, &es[i])
	}
	return t.write("save audit", step{stmt: insertAudit, rows: r})
}

// AuditList implements scheduler.KernelView.
func (v *view) AuditList(_ context.Context, q scheduler.AuditQuery) (es []lessor.Audited, err error) {
	err = v.page("list the audit", listAudit, [][]byte{textOrNil(q.Actor), textOrNil(q.Object)},
		func(r *row) { es = append(es, readAudited(r)) }, before(q.After), limitOf(q.Limit))
	return es, err
}
