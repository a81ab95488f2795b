package storetest

import (
	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// purgeKernel removes ticks, cleared alerts and audit entries page by page, the oldest first.
func purgeKernel(b *bed) {
	b.update(func(tx scheduler.Tx) error { return b.fillKernel(tx, "stays") }) // but for its tick, of 10, and its entry, of 4
	for i := range 5 {
		at := lessor.Instant(100 + i)
		cleared := b.alert(lessor.AlertHung, "lease", acme)
		cleared.ClearedAt = at
		b.saveAlerts(cleared)
		b.saveTicks(rules.TickRow{Definition: "stays", Tenant: acme, At: at, Outcome: lessor.TickFired})
		b.update(func(tx scheduler.Tx) error {
			return tx.SaveAudit(b.Context(), []lessor.Audited{{ID: lessor.AuditID{UUID: b.uuid()}, At: at, Actor: "a"}})
		})
	}
	before := b.kernelState("stays")
	for _, step := range []struct {
		before lessor.Instant
		limit  int
		want   int
	}{{4, 10, 0}, {104, 0, 0}, {11, 10, 2}, {104, 3, 9}, {104, 3, 3}, {104, 3, 0}, {105, 10, 3}} {
		var got int
		b.update(func(tx scheduler.Tx) (err error) {
			got, err = tx.PurgeKernel(b.Context(), step.before, step.limit)
			return err
		})
		if got != step.want {
			b.Fatalf("purge before %d, at most %d each: %d, want %d", step.before, step.limit, got, step.want)
		}
		if step.limit == 3 && got == 9 {
			state := b.kernelState("stays")
			if state.Ticks["stays"][0].At != 103 || state.Alerts[1].ClearedAt != 103 || state.Audit[1].At != 103 {
				b.Fatalf("the oldest did not go first: %+v", state)
			}
		}
	}
	want := before
	want.Ticks, want.Audit, want.Alerts = map[string][]rules.TickRow{"stays": nil}, nil, before.Alerts[5:]
	b.same("what stays", b.kernelState("stays"), want)
}
