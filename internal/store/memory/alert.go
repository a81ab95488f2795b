package memory

import (
	"context"
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/scheduler"
)

// subjectKey is what only one open alert may be about.
func subjectKey(kind lessor.AlertKind, subject string, tenant lessor.TenantID) key {
	return key{text: string(kind) + " " + subject, id: tenant.UUID}
}

// SaveAlerts implements scheduler.Tx.
func (t *tx) SaveAlerts(_ context.Context, as []lessor.Alert) error {
	return t.do("save alerts", func() error {
		for _, a := range as {
			k, about := key{id: a.ID.UUID}, subjectKey(a.Kind, a.Subject, a.TenantID)
			if err := t.acquire(lock{"alert", k}); err != nil {
				return err
			}
			if err := t.acquire(lock{"open alert", about}); err != nil {
				return err
			}
			open, is := t.state.open.get(about)
			if is && open != a.ID && a.ClearedAt == 0 {
				return fmt.Errorf("%w: a second open alert about %s", scheduler.ErrAgain, a.Subject)
			}
			known, _ := t.state.alerts.get(k)
			a.AcknowledgedAt, a.AcknowledgedBy = known.AcknowledgedAt, known.AcknowledgedBy
			t.write(func(s *tables) {
				s.alerts.put(k, a)
				if a.ClearedAt == 0 {
					s.open.put(about, a.ID)
				} else if is && open == a.ID {
					s.open.drop(about)
				}
			})
		}
		return nil
	})
}

// AcknowledgeAlert implements scheduler.Tx.
func (t *tx) AcknowledgeAlert(_ context.Context, id lessor.AlertID, by string, at lessor.Instant) error {
	return t.do("acknowledge an alert", func() error {
		k := key{id: id.UUID}
		if err := t.acquire(lock{"alert", k}); err != nil {
			return err
		}
		if a, ok := t.state.alerts.get(k); ok && a.AcknowledgedAt == 0 {
			a.AcknowledgedAt, a.AcknowledgedBy = at, &by
			t.write(func(s *tables) { s.alerts.put(k, a) })
		}
		return nil
	})
}

// Alert implements scheduler.View.
func (v *view) Alert(_ context.Context, id lessor.AlertID) (*lessor.Alert, error) {
	s := v.read("read an alert")
	return s.alert(id)
}

func (s *tables) alert(id lessor.AlertID) (*lessor.Alert, error) {
	if a, ok := s.alerts.get(key{id: id.UUID}); ok {
		return &a, nil
	}
	return nil, nil
}

// OpenAlert implements scheduler.View.
func (v *view) OpenAlert(
	_ context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID,
) (*lessor.Alert, error) {
	s := v.read("read the open alert")
	if id, ok := s.open.get(subjectKey(kind, subject, tenant)); ok {
		return s.alert(id)
	}
	return nil, v.err
}

// AlertList implements scheduler.View.
func (v *view) AlertList(_ context.Context, q scheduler.AlertQuery) ([]lessor.Alert, error) {
	s := v.read("list alerts")
	return page(s.alerts.back(before(q.After)), q.Limit, func(a lessor.Alert) bool {
		return is(q.Tenant, a.TenantID) && (!q.Open || a.ClearedAt == 0)
	}), nil
}

// SaveAudit implements scheduler.Tx.
func (t *tx) SaveAudit(_ context.Context, es []lessor.Audited) error {
	return save(t, "save audit", "audit", slices.Clone(es), func(e *lessor.Audited) key { return key{id: e.ID.UUID} },
		func(s *tables, e *lessor.Audited) { s.audit.put(key{id: e.ID.UUID}, *e) })
}

// AuditList implements scheduler.View.
func (v *view) AuditList(_ context.Context, q scheduler.AuditQuery) ([]lessor.Audited, error) {
	s := v.read("list the audit")
	return page(s.audit.back(before(q.After)), q.Limit, func(e lessor.Audited) bool {
		return (q.Actor == "" || e.Actor == q.Actor) && (q.Object == "" || e.Object == q.Object)
	}), nil
}
