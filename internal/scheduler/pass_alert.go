package scheduler

import (
	"context"
	"encoding/json"
	"fmt"

	"lessor"
	"lessor/internal/rules"
)

// raise stores an alert, unless there is one of this kind about this subject of the tenant already.
func (p *pass) raise(
	ctx context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID, message string,
) error {
	open, err := p.tx.OpenAlert(ctx, kind, subject, tenant)
	if err != nil || open != nil {
		return err
	}
	return p.saveNew(ctx, lessor.Alert{Kind: kind, Subject: subject, TenantID: tenant, Message: message, Count: 1})
}

// raiseAnew raises an alert about something that has begun anew. One that is still open is about what was before, and
// is cleared.
func (p *pass) raiseAnew(
	ctx context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID, message string,
) error {
	if err := p.clear(ctx, kind, subject, tenant); err != nil {
		return err
	}
	return p.saveNew(ctx, lessor.Alert{Kind: kind, Subject: subject, TenantID: tenant, Message: message, Count: 1})
}

// restate announces an open alert again with a new text, or raises it if there is none.
func (p *pass) restate(
	ctx context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID, message string,
) error {
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
	a.ID, a.RaisedAt = lessor.AlertID{UUID: p.l.newUUID()}, p.now
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

// audit records a change and its actor; nil means that there was nothing before, or is nothing after.
func (p *pass) audit(c Caller, action, object string, before, after any) {
	p.audited = append(p.audited, lessor.Audited{
		ID: lessor.AuditID{UUID: p.l.newUUID()}, At: p.now, Actor: c.Actor, Action: action, Object: object,
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

// raiseAbout raises an alert about a definition, unless it is open, and publishes it to every node, because any of them
// may have to clear it.
func (p *pass) raiseAbout(ctx context.Context, of alertOf, count int64, message string) error {
	open, err := p.tx.OpenAlert(ctx, of.kind, of.id, of.tenant)
	if err != nil {
		return err
	}
	p.l.alerted[of] = true
	if open != nil {
		return nil
	}
	p.l.fold.ChangeSettings()
	return p.saveNew(
		ctx, lessor.Alert{Kind: of.kind, Subject: of.id, TenantID: of.tenant, Message: message, Count: count},
	)
}

// clearAbout clears an alert about a definition, if one is known to be open.
func (p *pass) clearAbout(ctx context.Context, of alertOf) error {
	if !p.l.alerted[of] {
		return nil
	}
	delete(p.l.alerted, of)
	return p.clear(ctx, of.kind, of.id, of.tenant)
}

// lateTicks raises an alert about ticks that were missed, and clears it when the next fires in time.
func (p *pass) lateTicks(ctx context.Context, d *rules.Definition, rows []rules.TickRow) error {
	of := alertOf{lessor.AlertMissedTicks, d.Tenant, d.ID}
	switch missed, fired := rules.Late(rows); {
	case missed != nil:
		return p.raiseAbout(ctx, of, missed.Count, fmt.Sprintf(
			"%d ticks of %s were missed, from %s to %s: they lay before its catch-up window",
			missed.Count, d.ID, missed.From, missed.To))
	case fired:
		return p.clearAbout(ctx, of)
	}
	return nil
}

// clearAlerts clears the open alerts about a definition that is removed.
func (p *pass) clearAlerts(ctx context.Context, d *rules.Definition) error {
	for _, kind := range []lessor.AlertKind{lessor.AlertNoWorker, lessor.AlertMissedTicks} {
		if err := p.clearAbout(ctx, alertOf{kind, d.Tenant, d.ID}); err != nil {
			return err
		}
	}
	if h := p.l.fold.Blocked(d.ID); h.Circuit.Closed() {
		return nil
	}
	return p.clear(ctx, lessor.AlertCircuitOpen, d.ID, d.Tenant)
}
