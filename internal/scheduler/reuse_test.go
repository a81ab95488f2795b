package scheduler_test

import (
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

var (
	ofA = scheduler.Caller{Actor: "ann", Tenant: &tenantA}
	ofB = scheduler.Caller{Actor: "bob", Tenant: &tenantB}
)

// hourly is a definition of a tenant whose circuit opens at the first failure and rests for a second.
func hourly(id string, tenant lessor.TenantID) lessor.Envelope {
	return interval(id, 60, func(e *lessor.Envelope) {
		e.TenantID, e.Schedule = new(tenant.String()), &lessor.ScheduleAsk{Type: new("cron"), Cron: new("0 * * * *")}
		e.MaxAttempts = new(int64(9))
		e.Circuit, e.Backoff = &lessor.CircuitAsk{
			Failures: new(int64(1)), CooldownSeconds: new(int64(1)),
		}, &lessor.DefinitionBackoffAsk{FirstMS: new(int64(1)), MaxMS: new(int64(1))}
	})
}

func TestDeletedIDPassesToAnotherTenant(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) { passID(w, w) })
}

func TestDeletedIDPassesToAnotherTenantOnAnotherNode(t *testing.T) {
	ws := nodes(t, 2, config(), nil)
	passID(ws[0], ws[1])
}

// passID deletes a definition of tenant A that has ticks, an alert and a running job. Tenant B takes its id, and sees
// nothing of that. Tenant A calls node a, and tenant B calls node b.
func passID(a, b *world) {
	t, ctx := a.t, a.ctx
	t.Helper()
	a.put(hourly("sync.crm", tenantA))
	from, to := now().Add(-3*time.Hour), now().Add(-time.Minute)
	filled, err := a.Backfill(ctx, ofA, "sync.crm", from, to)
	if err != nil || filled < 2 {
		t.Fatalf("backfill: %d, %v", filled, err)
	}
	a.mustComplete(a.lease("w1", waiting(9000)), "failed") // A's circuit opens
	if got := a.alerts(true); got != "circuit_open sync.crm" {
		t.Fatalf("alerts of A: %q", got)
	}
	running := a.lease("w1", waiting(9000)) // its trial
	if err := a.DeleteDefinition(ctx, ofA, "sync.crm"); err != nil {
		t.Fatal(err)
	}

	if d, created := b.put(hourly("sync.crm", tenantB)); !created || d.TenantID != tenantB {
		t.Fatalf("B's definition: %+v, created %v", d, created)
	}
	if n, err := b.Backfill(ctx, ofB, "sync.crm", from, to); n != filled || err != nil {
		t.Fatalf("backfill of B: %d, %v; want %d, as if the id were new", n, err, filled)
	}
	if ticks, _, err := b.Ticks(ctx, ofB, "sync.crm", lessor.TickFilter{Limit: 100}); len(ticks) != filled ||
		err != nil {
		t.Errorf("%d ticks of B, %v; want %d", len(ticks), err, filled)
	}
	a.mustComplete(running, "failed") // and is tried again
	if cs, _, err := b.Circuits(ctx, ofB, 10, ""); len(cs) != 0 || err != nil {
		t.Errorf("A's failure counted into B's circuit: %+v, %v", cs, err)
	}
	if runs, _, err := b.Runs(ctx, ofB, lessor.RunFilter{JobID: "sync.crm", Limit: 100}); len(runs) != 0 || err != nil {
		t.Errorf("B sees runs before its first: %+v, %v", runs, err)
	}

	again := b.leaseOf(tenantA) // A's job is granted, and waits for nobody
	b.mustCompleteAs(ofB, b.leaseOf(tenantB), "failed")
	if list, _, err := b.Alerts(ctx, ofB, lessor.AlertFilter{Open: true, Limit: 10}); len(list) != 1 || err != nil {
		t.Errorf("alerts of B: %+v, %v; want one about its circuit", list, err)
	}
	a.mustCompleteAs(ofA, again, "failed")
	time.Sleep(1100 * time.Millisecond) // B's circuit has rested, and A's job is due
	grants, denied := b.askMany("w2", func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(10)) })
	if denied != nil || len(grants) != 2 {
		t.Fatalf("%d grants, %+v; want one job of each", len(grants), denied)
	}
	for _, g := range grants {
		b.mustComplete(g, map[lessor.TenantID]string{tenantA: "failed", tenantB: "completed"}[g.Job.TenantID])
	}
	if cs, _, err := b.Circuits(ctx, ofB, 10, ""); len(cs) != 0 || err != nil {
		t.Errorf("B's trial succeeded and did not close its circuit: %+v, %v", cs, err)
	}
	if err := b.DeleteDefinition(ctx, ofB, "sync.crm"); err != nil {
		t.Fatal(err)
	}
	if j, err := a.Job(ctx, ofA, running.Job.ID); err != nil || j.State == lessor.Cancelled {
		t.Errorf("A's job after B deleted its definition: %+v, %v", j, err)
	}
	a.noDrift()
	b.noDrift()
}

// leaseOf takes one job of a tenant.
func (w *world) leaseOf(tenant lessor.TenantID) lessor.Grant {
	w.t.Helper()
	grants, denied, err := w.Request(w.ctx, scheduler.Caller{Actor: "worker", Tenant: &tenant},
		lessor.LeaseRequest{WorkerID: new("w1"), WaitMS: new(int64(9000))})
	if err != nil || denied != nil {
		w.t.Fatalf("request of %s: %+v, %v", tenant, denied, err)
	}
	return grants[0]
}
