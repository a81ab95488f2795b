package storetest

import (
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/scheduler"
)

func (b *bed) alert(kind lessor.AlertKind, subject string, tenant lessor.TenantID) lessor.Alert {
	return lessor.Alert{
		ID: lessor.AlertID{UUID: b.uuid()}, Kind: kind, Subject: subject, TenantID: tenant,
		Message: "look at " + subject, RaisedAt: 100, Count: 3,
	}
}

func (b *bed) saveAlerts(as ...lessor.Alert) {
	b.Helper()
	b.update(func(tx scheduler.Tx) error { return tx.SaveAlerts(b.Context(), as) })
}

func (b *bed) openAlert(kind lessor.AlertKind, subject string, tenant lessor.TenantID) *lessor.Alert {
	b.Helper()
	return readTwice(b, "open alert", func(v scheduler.View) (*lessor.Alert, error) {
		return v.OpenAlert(b.Context(), kind, subject, tenant)
	})
}

// oneOpenAlert raises and clears alerts about one subject.
func oneOpenAlert(b *bed) {
	var none *lessor.Alert
	first := b.alert(lessor.AlertStale, "lease 1", acme)
	b.same("open alert before any", b.openAlert(lessor.AlertStale, "lease 1", acme), none)
	b.saveAlerts(first, b.alert(lessor.AlertDead, "lease 1", acme), b.alert(lessor.AlertStale, "lease 2", acme))
	b.same("open alert", b.openAlert(lessor.AlertStale, "lease 1", acme), &first)
	others := b.alert(lessor.AlertStale, "lease 1", globex) // another tenant's subject has the same name
	b.saveAlerts(others)
	b.same("open alert of another tenant", b.openAlert(lessor.AlertStale, "lease 1", globex), &others)
	second := b.alert(lessor.AlertStale, "lease 1", acme)
	err := b.Update(b.Context(), func(tx scheduler.Tx) error {
		return tx.SaveAlerts(b.Context(), []lessor.Alert{second})
	})
	want := scheduler.ErrBadCall
	if b.Shared() {
		want = scheduler.ErrAgain
	}
	b.wants(err, want)
	b.same("open alert after a second was refused", b.openAlert(lessor.AlertStale, "lease 1", acme), &first)
	b.update(func(tx scheduler.Tx) error { return tx.AcknowledgeAlert(b.Context(), first.ID, "ann", 150) })
	b.update(func(tx scheduler.Tx) error { return tx.AcknowledgeAlert(b.Context(), first.ID, "bob", 160) })
	// Saving the alert again keeps the acknowledgement.
	b.saveAlerts(first)
	first.AcknowledgedAt, first.AcknowledgedBy = 150, new("ann")
	b.same("the alert by its id", readTwice(b, "alert", func(v scheduler.View) (*lessor.Alert, error) {
		return v.Alert(b.Context(), first.ID)
	}), &first)
	b.same("no alert", readTwice(b, "alert", func(v scheduler.View) (*lessor.Alert, error) {
		return v.Alert(b.Context(), lessor.AlertID{})
	}), none)
	b.same("open alert after its acknowledgement", b.openAlert(lessor.AlertStale, "lease 1", acme), &first)
	first.ClearedAt, first.Message = 200, "it is well"
	b.saveAlerts(first)
	b.same("open alert after it was cleared", b.openAlert(lessor.AlertStale, "lease 1", acme), none)
	b.saveAlerts(second)
	b.same("open alert after the next", b.openAlert(lessor.AlertStale, "lease 1", acme), &second)
	second.ClearedAt = 300
	b.saveAlerts(second, b.alert(lessor.AlertStale, "lease 1", acme)) // any number of cleared ones
	if n := len(b.alerts(scheduler.AlertQuery{})); n != 6 {
		b.Fatalf("%d alerts, want 6", n)
	}
}

// alerts reads a list to its end, two alerts a page.
func (b *bed) alerts(q scheduler.AlertQuery) []lessor.Alert {
	b.Helper()
	q.Limit = perPage
	return readPages(b, "alerts", q, scheduler.View.AlertList, func(q *scheduler.AlertQuery, last lessor.Alert) {
		q.After = &last.ID
	})
}

func alertLists(b *bed) {
	var all []lessor.Alert
	for i := range 12 {
		a := b.alert(lessor.AlertCircuitOpen, fmt.Sprint("d", i), tenant(byte(i%2)))
		if i%3 == 0 {
			a.ClearedAt = 150
		}
		all = append(all, a)
	}
	mixed := slices.Clone(all)
	slices.Reverse(mixed[3:9])
	b.saveAlerts(mixed...)
	one, none := tenant(1), tenant(7)
	for _, open := range []bool{false, true} {
		for _, tenant := range []*lessor.TenantID{nil, &one, &none} {
			want := []lessor.Alert{}
			for _, a := range slices.Backward(all) {
				if (!open || a.ClearedAt == 0) && (tenant == nil || a.TenantID == *tenant) {
					want = append(want, a)
				}
			}
			q := scheduler.AlertQuery{Tenant: tenant, Open: open}
			b.same(fmt.Sprintf("alerts of %+v", q), b.alerts(q), want)
		}
	}
}

// audit reads a list to its end, two entries a page.
func (b *bed) audit(q scheduler.AuditQuery) []lessor.Audited {
	b.Helper()
	q.Limit = perPage
	return readPages(b, "audit", q, scheduler.View.AuditList, func(q *scheduler.AuditQuery, last lessor.Audited) {
		q.After = &last.ID
	})
}

func auditLists(b *bed) {
	var all []lessor.Audited
	for i := range 12 {
		all = append(all, lessor.Audited{
			ID: lessor.AuditID{UUID: b.uuid()}, At: lessor.Instant(100 - i), Actor: []string{"ann", "bob"}[i%2],
			Action: fmt.Sprint("put ", i),
			Object: []string{"definition/d", "definition/e", "tenant/t"}[i%3], TraceID: fmt.Sprint("trace ", i),
		})
		if i%4 != 0 {
			all[i].Before = []byte(`{ "n" : 1.0 }`)
		}
		if i%4 != 1 {
			all[i].After = []byte(`{"zero":"\u0000"}`)
		}
	}
	b.update(func(tx scheduler.Tx) error { return tx.SaveAudit(b.Context(), all[6:]) })
	b.update(func(tx scheduler.Tx) error { return tx.SaveAudit(b.Context(), all[:6]) })
	for _, actor := range []string{"", "ann", "an", "nobody"} {
		for _, object := range []string{"", "definition/d", "tenant/t", "definition"} {
			want := []lessor.Audited{}
			for _, e := range slices.Backward(all) {
				if (actor == "" || e.Actor == actor) && (object == "" || e.Object == object) {
					want = append(want, e)
				}
			}
			q := scheduler.AuditQuery{Actor: actor, Object: object}
			got := b.audit(q)
			b.same(fmt.Sprintf("audit of %+v", q), got, want)
			for i, e := range got {
				if (e.Before == nil) != (want[i].Before == nil) || (e.After == nil) != (want[i].After == nil) {
					b.Fatalf("an entry without before and after has some: %+v", e)
				}
			}
		}
	}
}
