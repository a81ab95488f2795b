package scheduler

import (
	"context"
	"encoding/json"

	"lessor"
	"lessor/internal/rules"
)

// raise stores an alert, unless there is one of this kind about this subject of the tenant already.
func (p *pass) raise(ctx context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID, message string) error {
	open, err := p.tx.OpenAlert(ctx, kind, subject, tenant)
	if err != nil || open != nil {
		return err
	}
	return p.saveNew(ctx, lessor.Alert{Kind: kind, Subject: subject, TenantID: tenant, Message: message, Count: 1})
}

// renew raises an alert about something that has begun anew. One that is still open is about what was before, and is cleared.
func (p *pass) renew(ctx context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID, message string) error {
	if err := p.clear(ctx, kind, subject, tenant); err != nil {
		return err
	}
	return p.saveNew(ctx, lessor.Alert{Kind: kind, Subject: subject, TenantID: tenant, Message: message, Count: 1})
}

// restate tells people anew what an open alert is about, or raises it if there is none.
func (p *pass) restate(ctx context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID, message string) error {
	open, err := p.tx.OpenAlert(ctx, kind, subject, tenant)
	if err != nil {
		return err
	}
	if open == nil {
		return p.saveNew(ctx, lessor.Alert{Kind: kind, Subject: subject, TenantID: tenant, Message: message, Count: 1})
	}
	open.Message = message
	return p.saveAlert(ctx, *open)
}

func (p *pass) saveNew(ctx context.Context, a lessor.Alert) error {
	a.ID, a.RaisedAt = lessor.AlertID{UUID: newUUID()}, p.now
	return p.saveAlert(ctx, a)
}

// clear ends the alert of this kind about this subject of a tenant, if there is one.
func (p *pass) clear(ctx context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID) error {
	open, err := p.tx.OpenAlert(ctx, kind, subject, tenant)
	if err != nil || open == nil {
		return err
	}
	open.ClearedAt = p.now
	return p.saveAlert(ctx, *open)
}

func (p *pass) saveAlert(ctx context.Context, a lessor.Alert) error {
	p.alerts = append(p.alerts, a)
	return p.tx.SaveAlerts(ctx, []lessor.Alert{a})
}

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

// Acknowledge notes that somebody knows of an alert; the first who says so is remembered.
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

// audit notes who changed what; nil is nothing before or after.
func (p *pass) audit(c Caller, action, object string, before, after any) {
	p.audited = append(p.audited, lessor.Audited{
		ID: lessor.AuditID{UUID: newUUID()}, At: p.now, Actor: c.Actor, Action: action, Object: object,
		Before: written(before), After: written(after), TraceID: c.TraceID,
	})
}

func written(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // what is shown elsewhere can be written here
	}
	return b
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
