package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lessor"
)

var (
	tenantA = lessor.TenantID{UUID: lessor.UUID{0xa}}
	tenantB = lessor.TenantID{UUID: lessor.UUID{0xb}}
)

// interval is the body of a definition of tenant A that ticks every so many seconds.
func interval(id string, seconds int64, edit func(*lessor.Envelope)) lessor.Envelope {
	e := lessor.Envelope{
		JobID: &id, TenantID: new(tenantA.String()), HandlerID: new("sync.run"), LockKey: new("lock." + id),
		Schedule: &lessor.ScheduleAsk{Type: new("interval"), Seconds: &seconds},
	}
	if edit != nil {
		edit(&e)
	}
	return e
}

func (w *world) put(e lessor.Envelope) (lessor.Definition, bool) {
	w.t.Helper()
	d, created, err := w.PutDefinition(w.ctx, anybody, *e.JobID, e)
	if err != nil {
		w.t.Fatalf("store definition %s: %v", *e.JobID, err)
	}
	return d, created
}

// ticks lists the outcomes of a definition's ticks, as "second outcome reason".
func (w *world) ticks(id string, start lessor.Instant) string {
	w.t.Helper()
	list, _, err := w.Ticks(w.ctx, anybody, id, lessor.TickFilter{Limit: 1000})
	if err != nil {
		w.t.Fatalf("list ticks: %v", err)
	}
	var words []string
	for _, k := range list {
		word := fmt.Sprintf("%d %s", k.TickAt.Sub(start)/time.Second, k.Outcome)
		if k.Reason != nil {
			word += " " + *k.Reason
		}
		if k.Outcome == lessor.TickMissed {
			word += fmt.Sprintf(" %d", k.Count)
		}
		if (k.RunID != nil) != (k.Outcome != lessor.TickSkipped && k.Outcome != lessor.TickMissed) {
			w.t.Errorf("tick %+v: a run id belongs to those that ran or met an open circuit", k)
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func (w *world) wantTicks(id string, start lessor.Instant, want string) {
	w.t.Helper()
	if got := w.ticks(id, start); got != want {
		w.t.Fatalf("ticks are\n %s, want\n %s", got, want)
	}
}

func (w *world) alerts(open bool) string {
	w.t.Helper()
	list, _, err := w.Alerts(w.ctx, anybody, lessor.AlertFilter{Open: open, Limit: 100})
	if err != nil {
		w.t.Fatalf("list alerts: %v", err)
	}
	var words []string
	for _, a := range list {
		words = append(words, string(a.Kind)+" "+a.Subject)
	}
	return strings.Join(words, ", ")
}

func (w *world) actions() []string {
	w.t.Helper()
	list, _, err := w.Audit(w.ctx, lessor.AuditFilter{Limit: 1000})
	if err != nil {
		w.t.Fatalf("list the audit: %v", err)
	}
	var words []string
	for _, e := range slices.Backward(list) {
		words = append(words, e.Actor+" "+e.Action+" "+e.Object)
	}
	return words
}

func (w *world) runs(f lessor.RunFilter) []lessor.Run {
	w.t.Helper()
	f.Limit = 1000
	list, _, err := w.Runs(w.ctx, anybody, f)
	if err != nil {
		w.t.Fatalf("list runs: %v", err)
	}
	return list
}

func TestTickBecomesAJob(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		start := now()
		d, created := w.put(interval("sync.crm", 60, func(e *lessor.Envelope) {
			e.Payload, e.Priority = []byte(`{"a":1}`), new("high")
			e.TimeoutSeconds, e.MaxAttempts = new(int64(9)), new(int64(2))
		}))
		if !created || d.NextTickAt != start.Add(time.Minute) {
			t.Fatalf("created %v, next tick %s, want one in a minute", created, d.NextTickAt)
		}
		time.Sleep(45 * time.Second)
		g := w.lease("worker-1", waiting(30_000))
		if late := now().Sub(start.Add(time.Minute)); late > 10*time.Millisecond {
			t.Errorf("granted %v after the tick", late)
		}
		j := g.Job
		if j.Type != "sync.run" || *j.DefinitionID != "sync.crm" || j.TickAt != start.Add(time.Minute) ||
			j.TenantID != tenantA || j.Priority != lessor.High ||
			string(j.Payload) != `{"a":1}` || *j.MaxRuntimeS != 9 || j.MaxAttempts != 2 ||
			*j.LockKey != "lock.sync.crm" {
			t.Errorf("the job is %+v", j)
		}
		w.mustComplete(g, "completed")
		w.wantTicks("sync.crm", start, "60 fired")
		r := w.runs(lessor.RunFilter{JobID: "sync.crm"})
		if len(r) != 1 || r[0].RunID != j.ID || r[0].Status != lessor.RunSuccess || r[0].TraceID != j.TraceID ||
			r[0].Attempts != 1 {
			t.Errorf("runs are %+v", r)
		}
		w.noDrift()
	})
}

// TestTicksAfterADowntime restarts the process after downtimes shorter and longer than the catch-up window.
func TestTicksAfterADowntime(t *testing.T) {
	for _, c := range []struct {
		down time.Duration
		edit func(*lessor.Envelope)
		jobs int // of ticks that are caught up
	}{
		{0, nil, 0},
		{30 * time.Second, nil, 1},
		{time.Hour, nil, 1},
		{2 * time.Hour, nil, 1},
		{30 * 24 * time.Hour, nil, 1},
		{2 * time.Hour, func(e *lessor.Envelope) { e.CatchUp = new("none") }, 0},
		{30 * 24 * time.Hour, func(e *lessor.Envelope) { e.CatchUp, e.Overlap = new("all"), new("allow") }, 60},
	} {
		t.Run(fmt.Sprint(c.down, c.jobs), func(t *testing.T) {
			inWorld(t, config(), func(t *testing.T, w *world) {
				start := now()
				w.put(interval("sync.crm", 60, c.edit))
				w.restart(c.down + 30*time.Second)
				time.Sleep(time.Second)
				rows, _, err := w.Ticks(w.ctx, anybody, "sync.crm", lessor.TickFilter{Limit: 1000})
				if err != nil {
					t.Fatal(err)
				}
				var ticks int64
				next := start.Add(time.Minute)
				for _, r := range rows {
					if r.TickAt != next {
						t.Fatalf("the row of %s comes, want %s", r.TickAt, next)
					}
					ticks += r.Count
					next = next.Add(time.Duration(r.Count) * time.Minute)
				}
				if want := int64((c.down + 30*time.Second) / time.Minute); ticks != want {
					t.Errorf("the rows count %d ticks, want %d", ticks, want)
				}
				jobs, _, err := w.Jobs(w.ctx, anybody, lessor.JobFilter{Limit: 1000})
				if err != nil || len(jobs) != c.jobs {
					t.Errorf("%d jobs, %v; want %d", len(jobs), err, c.jobs)
				}
				w.noDrift()
			})
		})
	}
}

func TestTicksFollowTheOverlapPolicy(t *testing.T) {
	for overlap, want := range map[string]string{
		"skip":           "10 fired, 20 skipped overlap, 30 skipped overlap",
		"queueOne":       "10 fired, 20 fired, 30 skipped overlap",
		"allow":          "10 fired, 20 fired, 30 fired",
		"cancelPrevious": "10 fired, 20 fired, 30 fired",
	} {
		t.Run(overlap, func(t *testing.T) {
			inWorld(t, config(), func(t *testing.T, w *world) {
				start := now()
				w.put(interval("sync.crm", 10, func(e *lessor.Envelope) { e.Overlap = &overlap }))
				g := w.lease("worker-1", waiting(11_000))
				time.Sleep(21 * time.Second)
				w.wantTicks("sync.crm", start, want)
				j := w.job(g.Job.ID)
				if j.CancelRequested != (overlap == "cancelPrevious") {
					t.Errorf("cancel requested is %v", j.CancelRequested)
				}
				w.noDrift()
			})
		})
	}
}

func TestPausedDefinitionWaits(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		start := now()
		w.put(interval("sync.crm", 10, nil))
		time.Sleep(11 * time.Second) // one job waits
		if d, err := w.SetPaused(w.ctx, anybody, "sync.crm", true); err != nil || !d.Paused || d.NextTickAt != 0 {
			t.Fatalf("paused: %+v, %v", d, err)
		}
		if _, d := w.ask("worker-1", nil); d == nil {
			t.Error("a job of a paused definition was handed out")
		}
		run, err := w.Trigger(w.ctx, anybody, "sync.crm", nil)
		if err != nil {
			t.Fatalf("trigger: %v", err)
		}
		time.Sleep(25 * time.Second)
		w.wantState(run, lessor.Queued)
		w.restart(time.Second)
		if why, err := w.Why(w.ctx, anybody, run); err != nil || why.Reasons[0].Code != "definition_paused" {
			t.Errorf("why: %+v, %v", why, err)
		}
		time.AfterFunc(2*time.Second, func() {
			if _, err := w.SetPaused(w.ctx, anybody, "sync.crm", false); err != nil {
				t.Errorf("resume: %v", err)
			}
		})
		w.lease("worker-1", waiting(10_000))
		time.Sleep(10 * time.Second)
		w.wantTicks("sync.crm", start, "10 fired, 40 skipped overlap")
		w.noDrift()
	})
}

func TestCircuitOpensRestsTriesAndCloses(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		start := now()
		w.put(interval("sync.crm", 10, func(e *lessor.Envelope) {
			e.Circuit, e.MaxAttempts = &lessor.CircuitAsk{
				Failures: new(int64(2)), CooldownSeconds: new(int64(25)),
			}, new(int64(1))
		}))
		w.put(interval("sync.erp", 10, func(e *lessor.Envelope) { e.HandlerID = new("erp.run") }))
		crm := func(r *lessor.LeaseRequest) { r.Types, r.WaitMS = []string{"sync.run"}, new(int64(30_000)) }
		for range 2 {
			w.mustComplete(w.lease("worker-1", crm), "failed") // at 10 and 20
		}
		if got := w.alerts(true); got != "circuit_open sync.crm" {
			t.Fatalf("alerts: %q", got)
		}
		w.restart(time.Millisecond) // an open circuit outlives the process
		g := w.lease("worker-1", crm)
		if at := now().Sub(start) / time.Second; at != 50 {
			t.Errorf("the trial began at %d s, want at the first tick after the rest", at)
		}
		time.Sleep(11 * time.Second) // the tick at 60 meets a trial under way
		w.mustComplete(g, "failed")
		g = w.lease("worker-1", crm)
		w.mustComplete(g, "completed")
		w.wantTicks("sync.crm", start,
			"10 fired, 20 fired, 30 circuitOpen, 40 circuitOpen, "+
				"50 fired, 60 circuitOpen, 70 circuitOpen, 80 circuitOpen, 90 fired")
		if got := w.alerts(true); got != "" {
			t.Errorf("alerts after it closed: %q", got)
		}
		if cs, _, err := w.Circuits(w.ctx, anybody, 10, ""); err != nil || len(cs) != 0 {
			t.Errorf("circuits: %+v, %v", cs, err)
		}
		open := w.runs(lessor.RunFilter{JobID: "sync.crm", Status: lessor.RunCircuitOpen})
		if len(open) != 5 || open[4].Attempts != 0 || open[4].StartedAt != start.Add(30*time.Second) ||
			open[4].EndedAt != open[4].StartedAt {
			t.Errorf("runs under the open circuit: %+v", open)
		}
		if found := w.runs(lessor.RunFilter{Trace: open[4].TraceID}); len(found) != 1 || found[0] != open[4] {
			t.Errorf("by its trace id: %+v, want %+v", found, open[4])
		}
		if all := w.runs(lessor.RunFilter{JobID: "sync.crm"}); len(all) != 9 {
			t.Errorf("%d runs, want 9", len(all))
		}
		if got := strings.Count(w.ticks("sync.erp", start), "circuitOpen"); got != 0 {
			t.Error("another definition's circuit opened too")
		}
		kinds := ""
		for _, a := range w.sentAlerts {
			kinds += fmt.Sprintf("%s %v,", a.Kind, a.ClearedAt != 0)
		}
		if !strings.HasPrefix(strings.ReplaceAll(kinds, "no_worker false,", ""),
			strings.Repeat("circuit_open false,", 2)+"circuit_open true,") {
			t.Errorf("alerts %s, want one at the opening, one when the trial failed and one at the closing", kinds)
		}
		want := []string{
			"scheduler circuit.opened circuit/sync.crm", "scheduler circuit.reopened circuit/sync.crm",
			"scheduler circuit.closed circuit/sync.crm",
		}
		other := func(s string) bool { return !strings.Contains(s, "circuit.") }
		if got := slices.DeleteFunc(w.actions(), other); !slices.Equal(got, want) {
			t.Errorf("audit: %q", got)
		}
		w.noDrift()
	})
}

func TestReleasedTrialLetsAnotherTry(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.put(interval("sync.crm", 10, func(e *lessor.Envelope) {
			e.Circuit = &lessor.CircuitAsk{Failures: new(int64(1)), CooldownSeconds: new(int64(20))}
		}))
		g := w.lease("worker-1", waiting(20_000))
		w.mustComplete(g, "failed")
		g = w.lease("worker-1", waiting(30_000))
		if err := w.Release(w.ctx, anybody, g.Lease.ID, lessor.Release{WorkerID: new("worker-1")}); err != nil {
			t.Fatal(err)
		}
		again := w.lease("worker-2", waiting(1000))
		if again.Job.ID != g.Job.ID {
			t.Error("another job was tried")
		}
		w.mustComplete(again, "completed")
		w.noDrift()
	})
}

// TestJobBehindALockedCircuitIsNotGranted: a request for other jobs may have looked at the circuit before.
func TestJobBehindALockedCircuitIsNotGranted(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		w.put(failing("sync.crm", 15))
		w.mustComplete(w.lease("worker-1", waiting(30_000)), "failed")
		time.Sleep(21 * time.Second) // the circuit has cooled, and the next job is queued
		others := func(r *lessor.LeaseRequest) { r.Types = []string{"mail"} }
		if _, d := w.ask("worker-2", others); d == nil || w.depth() != 1 {
			t.Fatalf("denied: %v, queued: %d; want a denial and a job", d, w.depth())
		}
		f.locked.Store(true)
		if g, _ := w.ask("worker-1", nil); g != nil {
			t.Fatal("a job was granted that is not the trial of its open circuit")
		}
		f.locked.Store(false)
		w.mustComplete(w.lease("worker-1", nil), "completed")
		if cs, _, err := w.Circuits(w.ctx, anybody, 10, ""); err != nil || len(cs) != 0 {
			t.Errorf("circuits after a trial that succeeded: %+v, %v", cs, err)
		}
		w.noDrift()
	})
}

// TestRequestThatWaitsGetsTheTrialOfALockedCircuit: it is tried again although the other node changes nothing.
func TestRequestThatWaitsGetsTheTrialOfALockedCircuit(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		w.put(failing("sync.crm", 15))
		w.mustComplete(w.lease("worker-1", waiting(30_000)), "failed")
		time.Sleep(21 * time.Second)
		f.locked.Store(true)
		got := w.poll(anybody, "worker-1", nil)
		time.Sleep(time.Second)
		if got.Load() != nil {
			t.Fatal("the trial of a circuit that is locked was granted")
		}
		f.locked.Store(false)
		time.Sleep(time.Second)
		if got.Load() == nil {
			t.Error("the request still waits although its job may be tried")
		}
	})
}

func TestResetClosesACircuit(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.put(interval("sync.crm", 10, func(e *lessor.Envelope) {
			e.Circuit = &lessor.CircuitAsk{Failures: new(int64(1)), CooldownSeconds: new(int64(3600))}
		}))
		w.mustComplete(w.lease("worker-1", waiting(20_000)), "failed")
		time.Sleep(5 * time.Second)
		if _, d := w.ask("worker-1", nil); d == nil {
			t.Fatal("granted under an open circuit")
		}
		if _, err := w.ResetCircuit(w.ctx, anybody, "sync.crm"); err != nil {
			t.Fatal(err)
		}
		w.lease("worker-1", nil)
		if got := w.alerts(true); got != "" {
			t.Errorf("alerts: %q", got)
		}
	})
}

func TestTickWithoutAWorkerRaisesAnAlert(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.put(interval("sync.crm", 60, func(e *lessor.Envelope) { e.TimeoutSeconds = new(int64(30)) }))
		time.Sleep(89 * time.Second)
		if got := w.alerts(true); got != "" {
			t.Errorf("alerts before the timeout: %q", got)
		}
		time.Sleep(2 * time.Second)
		if got := w.alerts(true); got != "no_worker sync.crm" {
			t.Errorf("alerts after the timeout: %q", got)
		}
		time.Sleep(10 * time.Minute)
		w.restart(time.Second)
		w.lease("worker-1", nil)
		if got, all := w.alerts(true), w.alerts(false); got != "" || all != "no_worker sync.crm" {
			t.Errorf("alerts after a worker came: open %q, all %q", got, all)
		}
	})
}
