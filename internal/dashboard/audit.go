package dashboard

import (
	"strings"

	"lessor"
)

// auditPage tells who changed what.
type auditPage struct {
	Actor, Object string
	Entries       []lessor.Audited
	Next          string
}

func (v *visit) audit() (view, error) {
	q := v.r.URL.Query()
	p := auditPage{Actor: strings.TrimSpace(q.Get("actor")), Object: strings.TrimSpace(q.Get("object"))}
	list, next, err := v.scheduler.Audit(v.r.Context(), lessor.AuditFilter{Actor: p.Actor, Object: p.Object, Limit: pageSize, Cursor: q.Get("cursor")})
	p.Entries, p.Next = list, v.next(next)
	return view{"Audit", "audit", p}, err
}
