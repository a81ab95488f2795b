package scheduler_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func (w *world) setTenant(id lessor.TenantID, ask lessor.TenantAsk) lessor.Tenant {
	w.t.Helper()
	v, err := w.SetTenant(w.ctx, anybody, id, ask)
	if err != nil {
		w.t.Fatalf("set tenant: %v", err)
	}
	return v
}

// flood submits n jobs of a tenant.
func (w *world) flood(id lessor.TenantID, n int, edit func(*lessor.Submission)) {
	w.t.Helper()
	for n > 0 {
		subs := make([]lessor.Submission, min(n, 1000))
		for i := range subs {
			subs[i] = lessor.Submission{Type: new("generic"), TenantID: new(id.String())}
			if edit != nil {
				edit(&subs[i])
			}
		}
		if _, err := w.SubmitBatch(w.ctx, anybody, subs); err != nil {
			w.t.Fatalf("submit: %v", err)
		}
		n -= len(subs)
	}
}

func TestFloodOfOneTenantDoesNotDelayAnother(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.flood(tenantA, 100_000, nil)
		g := w.lease("worker-1", nil)
		w.flood(tenantB, 10, nil)
		w.mustComplete(g, "completed")
		if g := w.lease("worker-1", nil); g.Job.TenantID != tenantB {
			t.Error("the next free slot went to the tenant that floods the queue")
		}
	})
}

func TestWeightsAndCapsOfTenantsAndClasses(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.setTenant(tenantA, lessor.TenantAsk{Weight: lessor.SetTo(int64(3)), MaxConcurrency: lessor.SetTo(int64(40))})
		w.setTenant(tenantB, lessor.TenantAsk{})
		if _, err := w.SetClass(w.ctx, anybody, tenantA, "bulk", lessor.TenantAsk{
			MaxConcurrency: lessor.SetTo(int64(2)),
		}); err != nil {
			t.Fatal(err)
		}
		w.flood(tenantA, 100, nil)
		w.flood(tenantB, 100, nil)
		w.flood(tenantA, 10, func(s *lessor.Submission) { s.Priority, s.FairnessClass = new("high"), new("bulk") })
		w.restart(time.Second) // what was set outlives the process
		grants, _ := w.askMany("worker-1", func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(42)) })
		count := map[string]int{}
		for _, g := range grants {
			count[fmt.Sprintf("%x %s", g.Job.TenantID.UUID[0], g.Job.FairnessClass)]++
		}
		if want := map[string]int{"a bulk": 2, "a default": 30, "b default": 10}; !mapsEqual(count, want) {
			t.Errorf("granted %v, want %v", count, want)
		}
		list, _, err := w.Tenants(w.ctx, anybody, 10, "")
		if err != nil || len(list) != 2 || list[1].Leases != 32 || list[1].Units != 32 || list[1].Queued != 78 ||
			*list[1].MaxConcurrency != 40 || *list[0].MaxConcurrency != 25 {
			t.Errorf("tenants: %+v, %v", list, err)
		}
		w.askMany("worker-1", func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(100)) })
		if a, err := w.Tenant(w.ctx, anybody, tenantA); err != nil || a.Leases != 40 {
			t.Errorf("tenant A holds %d of its 40, %v", a.Leases, err)
		}
		if b, err := w.Tenant(w.ctx, anybody, tenantB); err != nil || b.Leases != 25 {
			t.Errorf("tenant B holds %d of its 25, %v", b.Leases, err)
		}
		classes, err := w.Classes(w.ctx, anybody, tenantA)
		if err != nil || len(classes) != 2 || classes[0].Class != "bulk" || classes[0].Leases != 2 ||
			classes[0].Queued != 8 {
			t.Errorf("classes: %+v, %v", classes, err)
		}
		w.noDrift()
	})
}

// TestDefaultCapThatIsSentBackStaysTheDefault edits the weight of a tenant as it was read: its cap is not set by that.
// Sent alone, the same number is a cap.
func TestDefaultCapThatIsSentBackStaysTheDefault(t *testing.T) {
	onBothStores(t, config(), func(t *testing.T, w, _ *world) {
		stored := func() (all []rules.Policy) {
			t.Helper()
			if err := w.store.View(w.ctx, func(v scheduler.View) (err error) {
				all, err = v.Policies(w.ctx)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return all
		}
		read, err := w.Tenant(w.ctx, anybody, tenantA)
		if err != nil || *read.MaxConcurrency != 25 || !read.MaxConcurrencyDefault {
			t.Fatalf("a tenant without settings: %+v, %v", read, err)
		}
		ask := lessor.TenantAsk{
			Weight: lessor.SetTo(int64(3)), MaxConcurrency: lessor.SetTo(int64(25)),
			MaxConcurrencyDefault: &read.MaxConcurrencyDefault,
		}
		got := w.setTenant(tenantA, ask)
		if all := stored(); got.Weight != 3 || !got.MaxConcurrencyDefault ||
			len(all) != 1 || all[0].Weight != 3 || all[0].Cap != 0 {
			t.Errorf("sent back with another weight: %+v, stored as %+v", got, all)
		}
		got = w.setTenant(tenantA, lessor.TenantAsk{MaxConcurrency: lessor.SetTo(int64(25))})
		if all := stored(); got.MaxConcurrencyDefault || all[0].Cap != 25 {
			t.Errorf("set to the number of the default: %+v, stored as %+v", got, all)
		}
		w.noDrift()
	})
}

func mapsEqual(a, b map[string]int) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func TestPausedTenantGetsNothingUntilItIsResumed(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.flood(tenantA, 1, nil)
		w.setTenant(tenantA, lessor.TenantAsk{Paused: lessor.SetTo(true)})
		time.AfterFunc(time.Second, func() { w.setTenant(tenantA, lessor.TenantAsk{Weight: lessor.SetTo(int64(2))}) })
		time.AfterFunc(3*time.Second, func() {
			w.setTenant(tenantA, lessor.TenantAsk{Paused: lessor.Change[bool]{Reset: true}})
		})
		start := time.Now()
		w.lease("worker-1", waiting(10_000))
		if took := time.Since(start); took < 3*time.Second || took > 3*time.Second+20*time.Millisecond {
			t.Errorf("granted after %v, want at the end of the pause", took)
		}
	})
}

func TestManifestStoresAllOrNothing(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		apply := func(edit func(*lessor.Manifest), ids ...string) (lessor.Applied, error) {
			m := lessor.Manifest{
				ModuleID: new("books"), Version: new("1"), TenantID: new(tenantA.String()), Prune: new(true),
			}
			for _, id := range ids {
				m.Jobs = append(m.Jobs, interval(id, 60, nil))
			}
			if edit != nil {
				edit(&m)
			}
			return w.Apply(w.ctx, anybody, m)
		}
		want := func(edit func(*lessor.Manifest), want string, ids ...string) {
			t.Helper()
			a, err := apply(edit, ids...)
			if got := fmt.Sprint(a.Created, a.Changed, a.Unchanged, a.Removed, err); got != want {
				t.Fatalf("applied %s, want %s", got, want)
			}
		}
		dry := func(m *lessor.Manifest) { m.DryRun = new(true) }
		want(dry, "[one two] [] [] [] <nil>", "one", "two")
		want(nil, "[one two] [] [] [] <nil>", "one", "two")
		entries := len(w.actions())
		want(nil, "[] [] [one two] [] <nil>", "one", "two")
		if got := w.actions(); len(got) != entries || entries != 2 ||
			got[0] != "tester definition.created definition/one" {
			t.Errorf("audit: %q", got)
		}
		want(dry, "[] [] [two] [one] <nil>", "two")
		time.Sleep(61 * time.Second) // both have a job that waits
		want(func(m *lessor.Manifest) { m.Jobs[1].MaxAttempts = new(int64(7)) }, "[three] [two] [] [one] <nil>",
			"three", "two")
		jobs, _, err := w.Jobs(w.ctx, anybody, lessor.JobFilter{State: lessor.Cancelled, Limit: 10})
		if err != nil || len(jobs) != 1 || *jobs[0].DefinitionID != "one" {
			t.Errorf("cancelled with their definition: %+v, %v", jobs, err)
		}
		if _, err := w.Definition(w.ctx, anybody, "one"); w.wantCode(err, lessor.CodeDefinitionNotFound) == nil {
			t.Error("a removed definition is there")
		}
		_, err = apply(func(m *lessor.Manifest) { m.ModuleID = new("cars") }, "three", "four")
		w.wantCode(err, lessor.CodeConflict)
		if _, err := w.Definition(w.ctx, anybody, "four"); w.wantCode(err, lessor.CodeDefinitionNotFound) == nil {
			t.Error("half of a refused manifest was stored")
		}
		_, _, err = w.PutDefinition(w.ctx, anybody, "two",
			interval("two", 60, func(e *lessor.Envelope) { e.TenantID = new(tenantB.String()) }))
		w.wantCode(err, lessor.CodeConflict)
		w.put(interval("two", 61, nil)) // by hand: the module's next manifest reports the drift
		want(dry, "[] [two] [three] [] <nil>", "two", "three")
	})
}

func TestTenantSeesNoOtherTenantsSchedules(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.put(interval("sync.crm", 10, nil))
		g := w.lease("worker-1", waiting(20_000))
		w.mustComplete(g, "failed")
		b := scheduler.Caller{Actor: "b", Tenant: &tenantB}
		run := w.runs(lessor.RunFilter{})[0]
		for name, err := range map[string]error{
			"definition": errOf(w.Definition(w.ctx, b, "sync.crm")),
			"pause":      errOf(w.SetPaused(w.ctx, b, "sync.crm", true)),
			"delete":     w.DeleteDefinition(w.ctx, b, "sync.crm"),
			"trigger":    errOf(w.Trigger(w.ctx, b, "sync.crm", nil)),
			"reset":      errOf(w.ResetCircuit(w.ctx, b, "sync.crm")),
			"next":       errOf(w.NextTicks(w.ctx, b, "sync.crm", 1)),
		} {
			if e := w.wantCode(err, lessor.CodeDefinitionNotFound); e.Detail != lessor.ErrDefinitionNotFound.Detail {
				t.Errorf("%s says more than that there is none: %v", name, e)
			}
		}
		w.wantCode(errOf(w.RunAudit(w.ctx, b, run.RunID)), lessor.CodeRunNotFound)
		w.wantCode(errOf(w.RunError(w.ctx, b, run.LastErrorRef)), lessor.CodeErrorNotFound)
		w.wantCode(errOf(w.SetTenant(w.ctx, b, tenantA, lessor.TenantAsk{})), lessor.CodeForbidden)
		w.wantCode(errOf(w.Tenant(w.ctx, b, tenantA)), lessor.CodeForbidden)
		if e, err := w.RunError(w.ctx, anybody, run.LastErrorRef); err != nil || e.RunID != run.RunID ||
			e.Code != "failed" {
			t.Errorf("the error is %+v, %v", e, err)
		}
		for _, list := range []func() (int, error){
			func() (int, error) {
				l, _, err := w.Definitions(w.ctx, b, lessor.DefinitionFilter{Limit: 9})
				return len(l), err
			},
			func() (int, error) { l, _, err := w.Runs(w.ctx, b, lessor.RunFilter{Limit: 9}); return len(l), err },
			func() (int, error) { l, _, err := w.Circuits(w.ctx, b, 9, ""); return len(l), err },
			func() (int, error) { l, _, err := w.Alerts(w.ctx, b, lessor.AlertFilter{Limit: 9}); return len(l), err },
			func() (int, error) { l, _, err := w.Locks(w.ctx, b, nil, 9, ""); return len(l), err },
		} {
			if n, err := list(); n != 0 || err != nil {
				t.Errorf("a list shows %d of another tenant's, %v", n, err)
			}
		}
	})
}

func errOf[T any](_ T, err error) error { return err }

func TestRunsArePagedInOneOrder(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.put(interval("sync.crm", 10, func(e *lessor.Envelope) {
			e.Circuit, e.MaxAttempts = &lessor.CircuitAsk{
				Failures: new(int64(1)), CooldownSeconds: new(int64(25)),
			}, new(int64(1))
		}))
		for range 4 {
			w.submit(nil)
			w.mustComplete(w.lease("worker-1", func(r *lessor.LeaseRequest) { r.Types = []string{"generic"} }),
				"completed")
			g := w.lease("worker-1", func(r *lessor.LeaseRequest) {
				r.Types, r.WaitMS = []string{"sync.run"}, new(int64(30_000))
			})
			w.mustComplete(g, "failed")
			time.Sleep(25 * time.Second)
		}
		all := w.runs(lessor.RunFilter{})
		newest := func(a, b lessor.Run) int { return bytes.Compare(b.RunID.UUID[:], a.RunID.UUID[:]) }
		if len(all) < 12 || !slices.IsSortedFunc(all, newest) {
			t.Fatalf("%d runs, newest first?", len(all))
		}
		var paged []lessor.Run
		for cursor := ""; ; {
			page, next, err := w.Runs(w.ctx, anybody, lessor.RunFilter{Limit: 3, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			paged = append(paged, page...)
			if cursor = next; cursor == "" {
				break
			}
		}
		if !slices.Equal(paged, all) {
			t.Errorf("pages give %d runs, the whole list %d", len(paged), len(all))
		}
		for _, status := range []lessor.RunStatus{lessor.RunSuccess, lessor.RunFailed, lessor.RunCircuitOpen} {
			want := slices.DeleteFunc(slices.Clone(all), func(r lessor.Run) bool { return r.Status != status })
			if got := w.runs(lessor.RunFilter{Status: status}); !slices.Equal(got, want) || len(got) == 0 {
				t.Errorf("%d runs %s, want %d", len(got), status, len(want))
			}
		}
		one := all[len(all)-1]
		if got := w.runs(lessor.RunFilter{JobID: one.JobID}); len(got) != 1 || got[0] != one {
			t.Errorf("the run of plain job %s: %+v", one.JobID, got)
		}
		if got := w.runs(lessor.RunFilter{Trace: one.TraceID}); len(got) != 1 || got[0] != one {
			t.Errorf("the run of trace %s: %+v", one.TraceID, got)
		}
	})
}

func TestBackfillGivesPastTicksTheirJobs(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		start := now()
		w.put(interval("sync.crm", 10, nil)) // overlap skip: the second and later ticks get no job
		time.Sleep(41 * time.Second)
		n, err := w.Backfill(w.ctx, anybody, "sync.crm", start.Add(-20*time.Second), start.Add(30*time.Second))
		if err != nil || n != 2 {
			t.Fatalf("%d created, %v; want 2", n, err)
		}
		w.wantTicks("sync.crm", start, "10 fired, 20 caughtUp backfill, 30 caughtUp backfill, 40 skipped overlap")
		if n, err := w.Backfill(w.ctx, anybody, "sync.crm", start, start.Add(30*time.Second)); err != nil || n != 0 {
			t.Errorf("the same again creates %d, %v", n, err)
		}
		next, err := w.NextTicks(w.ctx, anybody, "sync.crm", 2)
		if err != nil || len(next) != 2 || next[0] != start.Add(50*time.Second) {
			t.Errorf("next ticks: %v, %v", next, err)
		}
	})
}

// TestBackfillAfterAChangeOfTheSchedule fills a range in which an earlier schedule made a row each second.
func TestBackfillAfterAChangeOfTheSchedule(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		start := now()
		w.put(interval("sync.crm", 1, nil))
		time.Sleep(45 * time.Minute)
		w.put(interval("sync.crm", 1, func(e *lessor.Envelope) {
			e.Schedule = &lessor.ScheduleAsk{Type: new("cron"), Cron: new("*/5 * * * *")}
		}))
		made, err := w.Backfill(w.ctx, anybody, "sync.crm", start, now())
		must(t, err)
		again, err := w.Backfill(w.ctx, anybody, "sync.crm", start, now())
		if made == 0 || again != 0 || err != nil {
			t.Errorf("%d jobs were made, and again %d (%v), want some and then none", made, again, err)
		}
	})
}

func TestPayloadsMeetTheirHandlersSchema(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		sent := func(typ, payload string) error {
			return errOf(w.Submit(w.ctx, anybody, lessor.Submission{Type: &typ, Payload: json.RawMessage(payload)}))
		}
		set := func(schema string) error {
			_, _, err := w.SetHandler(w.ctx, anybody, "mail.send", json.RawMessage(schema))
			return err
		}
		if err := sent("mail.send", `{"to": 1}`); err != nil {
			t.Fatalf("a handler without a schema refuses: %v", err)
		}
		bad := w.submit(func(s *lessor.Submission) {
			s.Type, s.Payload = new("mail.send"), json.RawMessage(`{"to": 2}`)
		})
		w.put(interval("mail.weekly", 7*24*3600, func(e *lessor.Envelope) { e.HandlerID = new("mail.send") }))
		run, err := w.Trigger(w.ctx, anybody, "mail.weekly", nil)
		if err != nil {
			t.Fatalf("trigger: %v", err)
		}
		if err := set(`{"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}`); err != nil {
			t.Fatalf("register: %v", err)
		}
		w.wantCode(set(`{"$ref": "file:///etc/passwd"}`), lessor.CodeInvalidValue)
		e := w.wantCode(sent("mail.send", `{"to": 3}`), lessor.CodeInvalidValue)
		if len(e.Fields) == 0 || !strings.HasPrefix(e.Fields[0].Field, "payload") {
			t.Errorf("fields: %+v", e.Fields)
		}
		daily := interval("mail.daily", 60, func(e *lessor.Envelope) { e.HandlerID = new("mail.send") })
		w.wantCode(errOf2(w.PutDefinition(w.ctx, anybody, "mail.daily", daily)), lessor.CodeInvalidValue)
		if err := sent("mail.send", `{"to": "me"}`); err != nil {
			t.Errorf("a payload that meets the schema is refused: %v", err)
		}
		w.restart(time.Second)
		g := w.lease("worker-1", nil)
		if string(g.Job.Payload) != `{"to": "me"}` {
			t.Errorf("handed out %s, want the one that meets the schema", g.Job.Payload)
		}
		j := w.wantState(bad.ID, lessor.Failed)
		if j.Error == nil || !strings.HasPrefix(*j.Error, "invalid_payload: the payload breaks the schema") ||
			j.Attempt != 0 {
			t.Errorf("the job that breaks it: %+v", j)
		}
		record, _, err := w.Events(w.ctx, anybody, bad.ID, 10, "")
		if err != nil || len(record) != 2 || record[1].Reason != "invalid_payload" ||
			*record[1].From != lessor.Queued || record[1].LeaseID != nil {
			t.Errorf("its record: %+v, %v", record, err)
		}
		audit, err := w.RunAudit(w.ctx, anybody, run)
		if err != nil || audit.LastErrorRef != run.String() {
			t.Errorf("the run of a definition: %+v, %v; want its own id as the reference of its error", audit, err)
		}
		failed, err := w.RunError(w.ctx, anybody, audit.LastErrorRef)
		if err != nil || failed.Ref != audit.LastErrorRef || failed.RunID != run || failed.Attempt != 0 ||
			failed.Code != "invalid_payload" || !strings.HasPrefix(failed.Message, "invalid_payload: the payload") {
			t.Errorf("its error: %+v, %v", failed, err)
		}
		b := scheduler.Caller{Actor: "b", Tenant: &tenantB}
		w.wantCode(errOf(w.RunError(w.ctx, b, audit.LastErrorRef)), lessor.CodeErrorNotFound)
		w.wantCode(errOf(w.RunError(w.ctx, anybody, g.Job.ID.String())), lessor.CodeErrorNotFound)
		w.noDrift()
	})
}

func errOf2[A, B any](_ A, _ B, err error) error { return err }

func TestChangesAreAudited(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.put(interval("sync.crm", 60, nil))
		w.setTenant(tenantA, lessor.TenantAsk{Weight: lessor.SetTo(int64(2))})
		if _, err := w.SetCapacity(w.ctx, anybody, lessor.CapacityAsk{
			TotalUnits: lessor.SetTo(int64(50)),
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.SetDraining(w.ctx, anybody, true); err != nil {
			t.Fatal(err)
		}
		if err := w.DeleteDefinition(w.ctx, anybody, "sync.crm"); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"tester definition.created definition/sync.crm", "tester tenant.changed tenant/" + tenantA.String(),
			"tester capacity.changed capacity",
			"tester drain.changed drain", "tester definition.deleted definition/sync.crm",
		}
		if got := w.actions(); !slices.Equal(got, want) {
			t.Errorf("audit: %q", got)
		}
		list, _, err := w.Audit(w.ctx, lessor.AuditFilter{Object: "tenant/" + tenantA.String(), Limit: 9})
		if err != nil || len(list) != 1 || !strings.Contains(string(list[0].Before), `"weight":1`) ||
			!strings.Contains(string(list[0].After), `"weight":2`) {
			t.Errorf("entry: %+v, %v", list, err)
		}
	})
}
