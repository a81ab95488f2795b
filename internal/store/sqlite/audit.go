package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/scheduler"
)

const auditColumns = "id, at, actor, action, object, trace_id, before, after"

func bindAudited(a *args, e *lessor.Audited) {
	a.id(e.ID.UUID)
	a.instant(e.At)
	a.text(e.Actor)
	a.text(e.Action)
	a.text(e.Object)
	a.text(e.TraceID)
	a.blobOrNull(e.Before)
	a.blobOrNull(e.After)
}

func readAudited(r *row) lessor.Audited {
	return lessor.Audited{
		ID:      lessor.AuditID{UUID: r.id()},
		At:      r.instant(),
		Actor:   r.text(),
		Action:  r.text(),
		Object:  r.text(),
		TraceID: r.text(),
		Before:  r.blob(),
		After:   r.blob(),
	}
}

// SaveAudit implements scheduler.KernelTx.
func (t *tx) SaveAudit(_ context.Context, es []lessor.Audited) error {
	return t.do("save audit", func() error {
		return t.w.audit.insert(len(es), func(i int, a *args) { bindAudited(a, &es[i]) })
	})
}

// AuditList implements scheduler.KernelView.
func (v *view) AuditList(ctx context.Context, q scheduler.AuditQuery) (es []lessor.Audited, err error) {
	w := &where{}
	if q.Actor != "" {
		w.and("actor = ?", func(a *args) { a.text(q.Actor) })
	}
	if q.Object != "" {
		w.and("object = ?", func(a *args) { a.text(q.Object) })
	}
	w.and("id < +?", func(a *args) { bindBefore(a, q.After) })
	err = v.page("select "+auditColumns+" from audit", w, "id desc", q.Limit, func(r *row) { es = append(es, readAudited(r)) })
	return es, readFault(ctx, "list the audit", err)
}
