package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/client"
)

// nightly is a manifest of one definition with nothing but what is required.
func nightly(seconds int64, edit func(*lessor.Envelope)) lessor.Manifest {
	tenant := "00000000-0000-0000-0000-00000000000a"
	e := lessor.Envelope{
		JobID: new("ledger.nightly"), HandlerID: new("ledger.post"), LockKey: new("ledger"),
		Schedule: &lessor.ScheduleAsk{Type: new("interval"), Seconds: &seconds},
	}
	if edit != nil {
		edit(&e)
	}
	return lessor.Manifest{ModuleID: new("ledger"), Version: new("1"), TenantID: &tenant, Jobs: []lessor.Envelope{e}}
}

// work leases the next job and ends it.
func work(t *testing.T, c *client.Client, status string) lessor.Job {
	t.Helper()
	for range 20 {
		grants, _, err := c.Request(t.Context(), lessor.LeaseRequest{
			WorkerID: new("worker-1"),
			WaitMS:   new(int64(30_000)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(grants) == 0 {
			continue
		}
		if err := c.Complete(t.Context(), grants[0].Lease.ID,
			lessor.Completion{WorkerID: new("worker-1"), Status: &status, Error: new("no ledger")}); err != nil {
			t.Fatal(err)
		}
		return grants[0].Job
	}
	t.Fatal("no job in ten minutes")
	return lessor.Job{}
}

// TestEvidenceA: registered from a manifest, a definition is stored with its defaults and audited; the same again
// changes nothing.
func TestEvidenceA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := up(t, Config{Data: t.TempDir()})
		a, err := c.Apply(t.Context(), nightly(60, nil))
		if err != nil || fmt.Sprint(a.Created) != "[ledger.nightly]" {
			t.Fatalf("applied: %+v, %v", a, err)
		}
		d, err := c.Definition(t.Context(), "ledger.nightly")
		if err != nil || d.MaxAttempts != 5 || d.MaxRuntimeSeconds != 300 || d.FairnessClass != "default" ||
			!d.IsEnabled || d.Timezone != "UTC" ||
			d.Overlap != lessor.OverlapSkip || d.CatchUp != lessor.CatchUpLatest || d.Circuit.Failures != 5 ||
			d.Circuit.CooldownSeconds != 300 {
			t.Errorf("stored: %+v, %v", d, err)
		}
		again, err := c.Apply(t.Context(), nightly(60, nil))
		if err != nil || fmt.Sprint(again.Unchanged) != "[ledger.nightly]" {
			t.Errorf("applied again: %+v, %v", again, err)
		}
		same, err := c.Definition(t.Context(), "ledger.nightly")
		if err != nil || same.UpdatedAt != d.UpdatedAt || same.NextTickAt != d.NextTickAt {
			t.Errorf("the same again changed it: %+v, %v", same, err)
		}
		entries, _, err := n.scheduler.Audit(t.Context(),
			lessor.AuditFilter{Object: "definition/ledger.nightly", Limit: 100})
		if err != nil || len(entries) != 1 || entries[0].Action != "definition.created" ||
			!strings.Contains(string(entries[0].After), `"timeoutSeconds":300`) {
			t.Errorf("audit: %+v, %v", entries, err)
		}
	})
}

// TestEvidenceD: after repeated failure the circuit opens for that job alone, ticks write CIRCUIT_OPEN, it rests,
// tries once and closes.
func TestEvidenceD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := up(t, Config{Data: t.TempDir()})
		if _, err := c.Apply(t.Context(), nightly(60,
			func(e *lessor.Envelope) { e.MaxAttempts = new(int64(1)) })); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			work(t, c, "failed")
		}
		circuits, _, err := c.Circuits(t.Context(), 10, "")
		if err != nil || len(circuits) != 1 || circuits[0].State != lessor.CircuitOpen || circuits[0].Failures != 5 {
			t.Fatalf("circuits: %+v, %v", circuits, err)
		}
		opened := circuits[0].OpenedAt
		trial := work(t, c, "completed")
		if rested := trial.CreatedAt.Sub(opened); rested < 5*time.Minute || rested > 6*time.Minute {
			t.Errorf("the trial came %v after the opening, want at the first tick after 5 minutes", rested)
		}
		runs, _, err := c.Runs(t.Context(), lessor.RunFilter{JobID: "ledger.nightly", Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		count := map[lessor.RunStatus]int{}
		for _, r := range runs {
			count[r.Status]++
		}
		if count[lessor.RunFailed] != 5 || count[lessor.RunCircuitOpen] < 4 || count[lessor.RunSuccess] != 1 {
			t.Errorf("runs: %v", count)
		}
		alerts, _, err := c.Alerts(t.Context(), lessor.AlertFilter{Limit: 100})
		alerts = slices.DeleteFunc(alerts, func(a lessor.Alert) bool { return a.Kind == lessor.AlertJobFailed })
		if err != nil || len(alerts) != 1 || alerts[0].Kind != lessor.AlertCircuitOpen || alerts[0].ClearedAt == 0 {
			t.Errorf("alerts: %+v, %v", alerts, err)
		}
		work(t, c, "completed") // closed: ticks make jobs again
	})
}

// TestEvidenceE: every run has its tenant, its trace id and its outcome, and one that failed a reference to its error.
func TestEvidenceE(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := up(t, Config{Data: t.TempDir()})
		if _, err := c.Apply(t.Context(), nightly(60,
			func(e *lessor.Envelope) { e.MaxAttempts = new(int64(1)) })); err != nil {
			t.Fatal(err)
		}
		const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
		ctx := client.WithTraceparent(t.Context(), "00-"+trace+"-00f067aa0ba902b7-01")
		id, err := c.Trigger(ctx, "ledger.nightly", nil)
		if err != nil {
			t.Fatal(err)
		}
		work(t, c, "failed")
		work(t, c, "completed")
		runs, _, err := c.Runs(t.Context(), lessor.RunFilter{Limit: 100})
		if err != nil || len(runs) != 2 {
			t.Fatalf("runs: %+v, %v", runs, err)
		}
		for _, r := range runs {
			if r.TenantID.String() != "00000000-0000-0000-0000-00000000000a" || len(r.TraceID) != 32 ||
				r.EndedAt == 0 || r.Attempts != 1 || r.JobID != "ledger.nightly" {
				t.Errorf("run: %+v", r)
			}
		}
		traced, _, err := c.Runs(t.Context(), lessor.RunFilter{Trace: trace, Limit: 100})
		if err != nil || len(traced) != 1 || traced[0].RunID != id || traced[0].Status != lessor.RunFailed {
			t.Fatalf("runs of the trace: %+v, %v", traced, err)
		}
		e, err := c.RunError(t.Context(), traced[0].LastErrorRef)
		if err != nil || e.RunID != id || e.Message != "no ledger" || e.Attempt != 1 {
			t.Errorf("error: %+v, %v", e, err)
		}
	})
}
