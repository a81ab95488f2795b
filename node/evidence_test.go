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

// nightly returns a manifest of one definition that has only the required fields, after edit has changed it.
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

// work leases the next job and ends it with a status.
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
	t.Fatal("no job was granted in ten minutes")
	return lessor.Job{}
}

// TestAppliedManifestIsStoredWithDefaultsAndAudited: a definition of a manifest is stored with its defaults and
// audited. Applying the manifest again changes nothing.
func TestAppliedManifestIsStoredWithDefaultsAndAudited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := servePipe(t, Config{Data: t.TempDir()})
		a, err := c.Apply(t.Context(), nightly(60, nil))
		if err != nil || fmt.Sprint(a.Created) != "[ledger.nightly]" {
			t.Fatalf("applied: %+v, %v; want ledger.nightly created", a, err)
		}
		d, err := c.Definition(t.Context(), "ledger.nightly")
		if err != nil || d.MaxAttempts != 5 || d.MaxRuntimeSeconds != 300 || d.FairnessClass != "default" ||
			!d.IsEnabled || d.Timezone != "UTC" ||
			d.Overlap != lessor.OverlapSkip || d.CatchUp != lessor.CatchUpLatest || d.Circuit.Failures != 5 ||
			d.Circuit.CooldownSeconds != 300 {
			t.Errorf("stored: %+v, %v; want the defaults", d, err)
		}
		again, err := c.Apply(t.Context(), nightly(60, nil))
		if err != nil || fmt.Sprint(again.Unchanged) != "[ledger.nightly]" {
			t.Errorf("applied again: %+v, %v; want ledger.nightly unchanged", again, err)
		}
		same, err := c.Definition(t.Context(), "ledger.nightly")
		if err != nil || same.UpdatedAt != d.UpdatedAt || same.NextTickAt != d.NextTickAt {
			t.Errorf("after the second time: %+v, %v; want %+v", same, err, d)
		}
		entries, _, err := n.scheduler.Audit(t.Context(),
			lessor.AuditFilter{Object: "definition/ledger.nightly", Limit: 100})
		if err != nil || len(entries) != 1 || entries[0].Action != "definition.created" ||
			!strings.Contains(string(entries[0].After), `"timeoutSeconds":300`) {
			t.Errorf("audit: %+v, %v; want one entry, definition.created with its time-out", entries, err)
		}
	})
}

// TestCircuitOpensAfterFailuresAndClosesAfterATrial: after five failures the circuit of the definition opens, and ticks
// are recorded as CIRCUIT_OPEN. After its cooldown one trial is granted, which closes the circuit.
func TestCircuitOpensAfterFailuresAndClosesAfterATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := servePipe(t, Config{Data: t.TempDir()})
		if _, err := c.Apply(t.Context(), nightly(60,
			func(e *lessor.Envelope) { e.MaxAttempts = new(int64(1)) })); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			work(t, c, "failed")
		}
		circuits, _, err := c.Circuits(t.Context(), 10, "")
		if err != nil || len(circuits) != 1 || circuits[0].State != lessor.CircuitOpen || circuits[0].Failures != 5 {
			t.Fatalf("circuits: %+v, %v; want one, open after 5 failures", circuits, err)
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
			t.Errorf("runs by status: %v, want 5 failed, 4 or more CIRCUIT_OPEN and 1 success", count)
		}
		alerts, _, err := c.Alerts(t.Context(), lessor.AlertFilter{Limit: 100})
		alerts = slices.DeleteFunc(alerts, func(a lessor.Alert) bool { return a.Kind == lessor.AlertJobFailed })
		if err != nil || len(alerts) != 1 || alerts[0].Kind != lessor.AlertCircuitOpen || alerts[0].ClearedAt == 0 {
			t.Errorf("alerts: %+v, %v; want one of the open circuit, cleared", alerts, err)
		}
		work(t, c, "completed") // the circuit is closed: ticks make jobs again
	})
}

// TestRunsHaveTenantTraceAndErrorReference: every run has its tenant, its trace id and its outcome. A failed run also
// has a reference to its error.
func TestRunsHaveTenantTraceAndErrorReference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := servePipe(t, Config{Data: t.TempDir()})
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
			t.Fatalf("runs: %+v, %v; want 2", runs, err)
		}
		for _, r := range runs {
			if r.TenantID.String() != "00000000-0000-0000-0000-00000000000a" || len(r.TraceID) != 32 ||
				r.EndedAt == 0 || r.Attempts != 1 || r.JobID != "ledger.nightly" {
				t.Errorf("run: %+v, want its tenant, a trace id, an end, one attempt and its definition", r)
			}
		}
		traced, _, err := c.Runs(t.Context(), lessor.RunFilter{Trace: trace, Limit: 100})
		if err != nil || len(traced) != 1 || traced[0].RunID != id || traced[0].Status != lessor.RunFailed {
			t.Fatalf("runs of the trace: %+v, %v; want the failed run %s", traced, err, id)
		}
		e, err := c.RunError(t.Context(), traced[0].LastErrorRef)
		if err != nil || e.RunID != id || e.Message != "no ledger" || e.Attempt != 1 {
			t.Errorf("error: %+v, %v; want \"no ledger\" of attempt 1 of run %s", e, err, id)
		}
	})
}
