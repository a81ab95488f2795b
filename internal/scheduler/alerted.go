package scheduler

import (
	"context"
	"fmt"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// alertOf names an alert about a definition for longer than the definition lives: its id may pass to another tenant.
type alertOf struct {
	kind   lessor.AlertKind
	tenant lessor.TenantID
	id     string
}

// alert raises an alert about a definition, unless it is open, and has every node know: any of them may see its end.
func (p *pass) alert(ctx context.Context, of alertOf, count int64, message string) error {
	open, err := p.tx.OpenAlert(ctx, of.kind, of.id, of.tenant)
	if err != nil {
		return err
	}
	p.l.alerted[of] = true
	if open != nil {
		return nil
	}
	p.l.fold.ChangeSettings()
	return p.saveNew(ctx, lessor.Alert{Kind: of.kind, Subject: of.id, TenantID: of.tenant, Message: message, Count: count})
}

// unalert clears an alert about a definition, if one is known to be open.
func (p *pass) unalert(ctx context.Context, of alertOf) error {
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
		return p.alert(ctx, of, missed.Count, fmt.Sprintf("%d ticks of %s were missed, from %s to %s: they lay before its catch-up window",
			missed.Count, d.ID, missed.From, missed.To))
	case fired:
		return p.unalert(ctx, of)
	}
	return nil
}

// clearAlerts clears what is open about a definition that goes.
func (p *pass) clearAlerts(ctx context.Context, d *rules.Definition) error {
	for _, kind := range []lessor.AlertKind{lessor.AlertNoWorker, lessor.AlertMissedTicks} {
		if err := p.unalert(ctx, alertOf{kind, d.Tenant, d.ID}); err != nil {
			return err
		}
	}
	if h := p.l.fold.Blocked(d.ID); h.Circuit.Closed() {
		return nil
	}
	return p.clear(ctx, lessor.AlertCircuitOpen, d.ID, d.Tenant)
}

// loadAlerted reads which alerts are open that this node may have to clear.
func (l *loop) loadAlerted(ctx context.Context, v View, f *fold.Fold) error {
	clear(l.alerted)
	for q := (AlertQuery{Open: true, Limit: pageLimit}); ; {
		page, err := v.AlertList(ctx, q)
		if err != nil {
			return err
		}
		for i := range page {
			switch a := &page[i]; a.Kind {
			case lessor.AlertNoWorker, lessor.AlertMissedTicks:
				l.alerted[alertOf{a.Kind, a.TenantID, a.Subject}] = true
			case lessor.AlertJobFailed:
				l.failing.adopt(a)
			}
		}
		if len(page) < pageLimit {
			return nil
		}
		q.After = &page[len(page)-1].ID
	}
}
