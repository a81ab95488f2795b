package scheduler_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// announced returns the alerts of one kind since the last call: + raised, - cleared.
func (w *world) announced(kind lessor.AlertKind) string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	signs := ""
	for _, a := range w.sentAlerts {
		switch {
		case a.Kind != kind:
		case a.ClearedAt == 0:
			signs += "+"
		default:
			signs += "-"
		}
	}
	w.sentAlerts = nil
	return signs
}

func (w *world) wantAnnounced(kind lessor.AlertKind, want string) {
	w.t.Helper()
	time.Sleep(2 * time.Millisecond) // an alert has a commit of its own, after the one that it is about
	if got := w.announced(kind); got != want {
		w.t.Errorf("alerts %s: %q, want %q", kind, got, want)
	}
}

// TestEachBrakeRaisesItsAlert: the alert is cleared at the end of the brake's floor, also over a restart, and the next
// brake raises it again.
func TestEachBrakeRaisesItsAlert(t *testing.T) {
	cfg := config()
	cfg.TTL = 2 * time.Second
	inWorld(t, cfg, func(t *testing.T, w *world) {
		silence := func() {
			for i := range 12 {
				w.submit(nil)
				w.lease(fmt.Sprintf("worker-%d", i%4), waiting(1000))
			}
			time.Sleep(cfg.TTL + time.Second)
		}
		silence()
		w.wantAnnounced(lessor.AlertMassExpiry, "+")
		time.Sleep(2 * time.Second) // the floor has ended
		w.wantAnnounced(lessor.AlertMassExpiry, "-")
		time.Sleep(20 * time.Second) // and the brake is ready
		silence()
		w.wantAnnounced(lessor.AlertMassExpiry, "+")
		w.restart(time.Minute)
		time.Sleep(time.Second)
		w.wantAnnounced(lessor.AlertMassExpiry, "-")
	})
}

// failing is a definition whose circuit opens at the first failure.
func failing(id string, cooldown int64) lessor.Envelope {
	return interval(id, 10, func(e *lessor.Envelope) {
		e.Circuit, e.MaxAttempts = &lessor.CircuitAsk{
			Failures: new(int64(1)), CooldownSeconds: &cooldown,
		}, new(int64(1))
	})
}

func TestReopenedCircuitRaisesAnAlert(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.put(failing("sync.crm", 15))
		message := func() string {
			list, _, err := w.Alerts(w.ctx, anybody, lessor.AlertFilter{Open: true, Limit: 9})
			if err != nil || len(list) != 1 {
				t.Fatalf("open alerts: %+v, %v", list, err)
			}
			return list[0].Message
		}
		w.mustComplete(w.lease("worker-1", waiting(30_000)), "failed")
		first := message()
		w.mustComplete(w.lease("worker-1", waiting(30_000)), "failed") // the trial
		if message() == first || !strings.HasPrefix(message(), "2 attempts") ||
			!strings.HasSuffix(message(), " after 15 s") {
			t.Errorf("the alert says %q, want two attempts, and a trial after 15 s", message())
		}
		w.wantAnnounced(lessor.AlertCircuitOpen, "++")
		const want = "scheduler circuit.opened circuit/sync.crm, scheduler circuit.reopened circuit/sync.crm"
		if got := strings.Join(w.actions(), ", "); !strings.Contains(got, want) {
			t.Errorf("audit: %s", got)
		}
	})
}

func TestDeletedDefinitionClearsItsAlerts(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		for range 2 { // the second is a definition like any other
			w.put(failing("sync.crm", 3600))
			w.mustComplete(w.lease("worker-1", waiting(30_000)), "failed")
			w.wantAnnounced(lessor.AlertCircuitOpen, "+")
			if err := w.DeleteDefinition(w.ctx, anybody, "sync.crm"); err != nil {
				t.Fatal(err)
			}
			w.wantAnnounced(lessor.AlertCircuitOpen, "-")
		}
		w.put(interval("sync.erp", 10, func(e *lessor.Envelope) {
			e.TimeoutSeconds, e.HandlerID = new(int64(1)), new("erp.run")
		}))
		w.restart(3 * time.Hour)
		time.Sleep(12 * time.Second)
		if got := w.alerts(true); got != "no_worker sync.erp, missed_ticks sync.erp" {
			t.Fatalf("alerts: %q", got)
		}
		if err := w.DeleteDefinition(w.ctx, anybody, "sync.erp"); err != nil {
			t.Fatal(err)
		}
		if got := w.alerts(true); got != "" {
			t.Errorf("alerts about a definition that is gone: %q", got)
		}
	})
}

func TestAlertOfMissedTicksIsClearedWhenOneFires(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.put(interval("sync.crm", 600, func(e *lessor.Envelope) { e.Overlap = new("allow") }))
		w.restart(50 * time.Minute) // inside the window
		time.Sleep(time.Second)
		w.wantAnnounced(lessor.AlertMissedTicks, "")
		for range 2 {
			w.restart(3*time.Hour + 5*time.Minute)
			time.Sleep(time.Second)
			w.restart(time.Second)
			list, _, err := w.Alerts(w.ctx, anybody, lessor.AlertFilter{Open: true, Limit: 9})
			if err != nil || list[0].Kind != lessor.AlertMissedTicks || list[0].Count < 12 ||
				strings.Count(w.alerts(true), "missed_ticks") != 1 {
				t.Fatalf("open alerts: %+v, %v; want one about the ticks of two hours", list, err)
			}
			w.wantAnnounced(lessor.AlertMissedTicks, "+")
			time.Sleep(10 * time.Minute)
			w.wantAnnounced(lessor.AlertMissedTicks, "-")
		}
	})
}

// TestFailedJobsRaiseAnAlert: the first of a type at once, the others of a minute at its end.
func TestFailedJobsRaiseAnAlert(t *testing.T) {
	cfg := config()
	cfg.FailedJobs = true
	inWorld(t, cfg, func(t *testing.T, w *world) {
		fail := func(typ string) {
			w.submit(func(s *lessor.Submission) { s.Type, s.MaxAttempts = &typ, new(int64(1)) })
			w.mustComplete(w.lease("worker-1", func(r *lessor.LeaseRequest) { r.Types = []string{typ} }), "failed")
		}
		w.submit(nil) // it is tried again
		w.mustComplete(w.lease("worker-1", nil), "failed")
		w.wantAnnounced(lessor.AlertJobFailed, "")
		fail("mail")
		w.wantAnnounced(lessor.AlertJobFailed, "+")
		fail("mail")
		fail("mail")
		w.wantAnnounced(lessor.AlertJobFailed, "")
		fail("pdf")
		w.wantAnnounced(lessor.AlertJobFailed, "+")
		if got := w.alerts(true); got != "job_failed pdf, job_failed mail" {
			t.Errorf("open: %q", got)
		}
		time.Sleep(time.Minute + time.Second)
		list, _, err := w.Alerts(w.ctx, anybody, lessor.AlertFilter{Limit: 9})
		if err != nil || len(list) != 2 || list[0].Count != 1 || list[1].Count != 3 || list[1].ClearedAt == 0 {
			t.Errorf("alerts after a minute: %+v, %v; want both cleared, with 1 and 3 jobs", list, err)
		}
		w.wantAnnounced(lessor.AlertJobFailed, "--")
		fail("mail")
		w.wantAnnounced(lessor.AlertJobFailed, "+")
		w.restart(time.Hour) // the next node that runs clears it
		time.Sleep(time.Second)
		w.wantAnnounced(lessor.AlertJobFailed, "-")
	})
}

// TestFailuresOnTwoNodesAreOneAlert: another node clears the alert into which this one counts. The failures that the
// other node did not know of are added to it, and make no second alert.
func TestFailuresOnTwoNodesAreOneAlert(t *testing.T) {
	cfg := config()
	cfg.FailedJobs = true
	inWorld(t, cfg, func(t *testing.T, w *world) {
		fail := func() {
			w.submit(func(s *lessor.Submission) { s.Type, s.MaxAttempts = new("mail"), new(int64(1)) })
			w.mustComplete(w.lease("worker-1", nil), "failed")
		}
		fail()
		w.wantAnnounced(lessor.AlertJobFailed, "+")
		time.Sleep(30 * time.Second)
		fail() // counted by this node only
		time.Sleep(30*time.Second - 10*time.Millisecond)
		// another node, whose clock is slightly ahead, would do the same
		err := w.store.Update(w.ctx, func(tx scheduler.Tx) error {
			a, err := tx.OpenAlert(w.ctx, lessor.AlertJobFailed, "mail", lessor.TenantID{})
			if err != nil || a == nil {
				t.Fatalf("open: %+v, %v", a, err)
			}
			a.ClearedAt = tx.Now()
			return tx.SaveAlerts(w.ctx, []lessor.Alert{*a})
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		list, _, err := w.Alerts(w.ctx, anybody, lessor.AlertFilter{Limit: 9})
		if err != nil || len(list) != 1 || list[0].Count != 2 || list[0].ClearedAt == 0 {
			t.Errorf("alerts after a minute: %+v, %v; want one, cleared, with 2 jobs", list, err)
		}
		w.wantAnnounced(lessor.AlertJobFailed, "-")
		time.Sleep(2 * time.Minute)
		w.wantAnnounced(lessor.AlertJobFailed, "")
		fail()
		w.wantAnnounced(lessor.AlertJobFailed, "+")
	})
}

func TestFirstAcknowledgementOfAnAlertStays(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.put(failing("sync.crm", 15))
		w.mustComplete(w.lease("worker-1", waiting(30_000)), "failed")
		open, _, err := w.Alerts(w.ctx, anybody, lessor.AlertFilter{Limit: 9})
		if err != nil || len(open) != 1 || open[0].AcknowledgedAt != 0 || open[0].AcknowledgedBy != nil {
			t.Fatalf("alerts: %+v, %v", open, err)
		}
		_, err = w.Acknowledge(w.ctx, ofB, open[0].ID)
		w.wantCode(err, lessor.CodeAlertNotFound) // another tenant's
		_, err = w.Acknowledge(w.ctx, ofB, lessor.AlertID{})
		w.wantCode(err, lessor.CodeAlertNotFound)
		at := now()
		for _, c := range []scheduler.Caller{ofA, anybody} { // the second is too late
			time.Sleep(time.Second)
			a, err := w.Acknowledge(w.ctx, c, open[0].ID)
			if err != nil || a.AcknowledgedAt != at.Add(time.Second) || *a.AcknowledgedBy != "ann" {
				t.Errorf("acknowledged by %s: %+v, %v", c.Actor, a, err)
			}
		}
		w.mustComplete(w.lease("worker-1", waiting(30_000)), "completed")
		list, _, err := w.Alerts(w.ctx, anybody, lessor.AlertFilter{Limit: 9})
		if err != nil || len(list) != 1 || list[0].ClearedAt == 0 || *list[0].AcknowledgedBy != "ann" {
			t.Errorf("after it was cleared: %+v, %v", list, err)
		}
		if got := strings.Join(w.actions(), ", "); strings.Count(got, "alert.acknowledged") != 1 ||
			!strings.Contains(got, "ann alert.acknowledged alert/"+open[0].ID.String()) {
			t.Errorf("audit: %s", got)
		}
	})
}

// TestWorkerThatComesToAnotherNodeClearsTheAlert: each node raises an alert, and the second node grants both jobs.
func TestWorkerThatComesToAnotherNodeClearsTheAlert(t *testing.T) {
	ws := nodes(t, 2, config(), nil)
	for i := range 6 { // each node takes some of them
		ws[i%2].put(interval(fmt.Sprint("sync.crm", i), 1, func(e *lessor.Envelope) {
			e.TimeoutSeconds = new(int64(1))
		}))
	}
	ws[0].eventually("alerted", func() bool { return strings.Count(ws[0].alerts(true), "no_worker") == 6 })
	for range 6 {
		ws[1].lease("worker-1", waiting(9000))
	}
	ws[1].eventually("cleared", func() bool { return ws[1].alerts(true) == "" })
}

// TestJobFromBeforeTheRestartRaisesAnAlert: no worker asks for a job that was queued before the restart.
func TestJobFromBeforeTheRestartRaisesAnAlert(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		w.put(interval("sync.crm", 60, func(e *lessor.Envelope) { e.TimeoutSeconds = new(int64(30)) }))
		time.Sleep(61 * time.Second)
		w.restart(time.Second)
		time.Sleep(29 * time.Second)
		if got := w.alerts(true); got != "" {
			t.Errorf("alerts before the timeout: %q", got)
		}
		time.Sleep(3 * time.Second)
		if got := w.alerts(true); got != "no_worker sync.crm" {
			t.Errorf("alerts after the timeout: %q", got)
		}
	})
}

// TestAlertSurvivesAFailedCommit: a job has no worker, and the store fails at the commit of the alert.
func TestAlertSurvivesAFailedCommit(t *testing.T) {
	inFaultyWorld(t, func(t *testing.T, w *world, f *faulty) {
		w.put(interval("sync.crm", 60, func(e *lessor.Envelope) { e.TimeoutSeconds = new(int64(30)) }))
		time.Sleep(89 * time.Second)
		broken := errors.New("disk on fire")
		f.alerts.Store(&broken)
		time.Sleep(3 * time.Second)
		if got := w.alerts(false); got != "" {
			t.Fatalf("alerts of commits that failed: %q", got)
		}
		f.alerts.Store(nil)
		time.Sleep(2 * time.Second)
		if got := w.alerts(true); got != "no_worker sync.crm" {
			t.Errorf("alerts after the store recovered: %q", got)
		}
		w.wantAnnounced(lessor.AlertNoWorker, "+")
	})
}
