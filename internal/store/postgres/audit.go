package postgres

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

const (
	auditColumns = "id, at, actor, action, object, trace_id, before, after"
	auditTypes   = "uittttyy"
)

var (
	insertAudit = wire.InsertAll("audit", auditColumns, auditTypes)
	listAudit   = variants("select "+auditColumns+" from audit where id < $3::uuid", " order by id desc limit $4::bigint",
		filter{"actor = ", "text"}, filter{"object = ", "text"})
)

func bindAudited(r *wire.Rows, e *lessor.Audited) {
	r.ID(e.ID.UUID)
	r.Instant(e.At)
	r.Text(e.Actor)
	r.Text(e.Action)
	r.Text(e.Object)
	r.Text(e.TraceID)
	r.BytesOrNull(e.Before)
	r.BytesOrNull(e.After)
}

func readAudited(r *wire.Row) lessor.Audited {
	return lessor.Audited{
		ID:      lessor.AuditID{UUID: r.ID()},
		At:      r.Instant(),
		Actor:   r.Text(),
		Action:  r.Text(),
		Object:  r.Text(),
		TraceID: r.Text(),
		Before:  r.Bytes(),
		After:   r.Bytes(),
	}
}

// SaveAudit implements scheduler.KernelTx.
func (t *tx) SaveAudit(_ context.Context, es []lessor.Audited) error {
	if len(es) == 0 {
		return t.err
	}
	r := t.scratch.Reset()
	for i := range es {
		r.Next()
		bindAudited(r, &es[i])
	}
	return t.write("save audit", wire.Step{Stmt: insertAudit, Rows: r})
}

// AuditList implements scheduler.KernelView.
func (v *view) AuditList(_ context.Context, q scheduler.AuditQuery) (es []lessor.Audited, err error) {
	err = v.page("list the audit", listAudit, [][]byte{wire.TextOrNil(q.Actor), wire.TextOrNil(q.Object)},
		func(r *wire.Row) { es = append(es, readAudited(r)) }, before(q.After), wire.Limit(q.Limit))
	return es, err
}
