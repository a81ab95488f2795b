package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// Alerts lists alerts, newest first, and the cursor of the next page ("" at the end).
func (s *Scheduler) Alerts(ctx context.Context, c Caller, f lessor.AlertFilter) ([]lessor.Alert, string, error) {
	if err := rules.CheckLimit(f.Limit); err != nil {
		return nil, "", err
	}
	q := AlertQuery{Tenant: c.Tenant, Open: f.Open, Limit: f.Limit + 1}
	if f.Cursor != "" {
		u, err := lessor.ParseUUID(f.Cursor)
		if err != nil {
			return nil, "", rules.BadCursor()
		}
		q.After = &lessor.AlertID{UUID: u}
	}
	return pageOf(ctx, s, "list alerts", f.Limit, func(a lessor.Alert) string { return a.ID.String() },
		func(v View) ([]lessor.Alert, error) { return v.AlertList(ctx, q) })
}

// Acknowledge records that the caller has seen an alert. Only the first acknowledgement is kept.
func (s *Scheduler) Acknowledge(ctx context.Context, c Caller, id lessor.AlertID) (shown lessor.Alert, err error) {
	err = s.change(ctx, c, func(ctx context.Context, p *pass) error {
		a, err := p.tx.Alert(ctx, id)
		switch {
		case err != nil:
			return err
		case a == nil || !c.sees(a.TenantID):
			return lessor.ErrAlertNotFound
		}
		if a.AcknowledgedAt == 0 {
			was := *a
			a.AcknowledgedAt, a.AcknowledgedBy = p.now, &c.Actor
			p.audit(c, "alert.acknowledged", "alert/"+id.String(), was, *a)
			err = p.tx.AcknowledgeAlert(ctx, id, c.Actor, p.now)
		}
		shown = *a
		return err
	})
	return shown, err
}

// Audit lists who changed what, newest first, and the cursor of the next page ("" at the end).
func (s *Scheduler) Audit(ctx context.Context, f lessor.AuditFilter) ([]lessor.Audited, string, error) {
	if err := rules.CheckLimit(f.Limit); err != nil {
		return nil, "", err
	}
	q := AuditQuery{Actor: f.Actor, Object: f.Object}
	if f.Cursor != "" {
		u, err := lessor.ParseUUID(f.Cursor)
		if err != nil {
			return nil, "", rules.BadCursor()
		}
		q.After = &lessor.AuditID{UUID: u}
	}
	return largePageOf(ctx, s, "list the audit", f.Limit, func(e lessor.Audited) string { return e.ID.String() },
		func(v View, last *lessor.Audited, n int) ([]lessor.Audited, error) {
			q := q
			if q.Limit = n; last != nil {
				q.After = &last.ID
			}
			return v.AuditList(ctx, q)
		})
}
