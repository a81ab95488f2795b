package recovery

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"lessor"
)

// All reports agree about a command of each kind.
func TestReportsAgree(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		reattached, dead := w.command(), w.command(func(s *lessor.Submission) { s.MaxAttempts = new(int64(1)) })
		w.restart(20 * time.Minute)
		reattached.pulse()
		reattached.live(5*time.Minute + 10*time.Second)
		w.submit()
		stale := w.take(longTTL)
		reattached.live(4 * time.Minute)
		fresh, bad := w.command(), w.command()
		if err := os.WriteFile(filepath.Join(bad.folder(), ".sentinel.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.pass(2 * time.Second)
		snap := w.snapshot()
		beats, status, metrics := snap.Heartbeats(), snap.Status(), snap.Metrics()
		if want := (lessor.HeartbeatSummary{Total: 3, Fresh: 2, Stale: 1, Invalid: 1}); beats.Summary != want ||
			len(beats.Jobs) != want.Total {
			t.Errorf("heartbeats: %+v", beats)
		}
		verdicts := map[string]lessor.HeartbeatStatus{}
		for _, j := range beats.Jobs {
			verdicts[j.JobID.String()] = j.Status
		}
		invalid := 0
		for _, s := range snap.Sentinels().Sentinels {
			switch {
			case !s.Valid:
				invalid++
			case verdicts[s.JobID] != *s.Status:
				t.Errorf("sentinel of %s is %s, its heartbeat %s", s.JobID, *s.Status, verdicts[s.JobID])
			}
		}
		if invalid != beats.Summary.Invalid {
			t.Errorf("%d invalid sentinels", invalid)
		}
		if s := snap.Stale().StaleJobs; len(s) != 1 || s[0].JobID != stale.id || s[0].AgeMinutes != 4.03 ||
			s[0].WorkspacePath != stale.folder() {
			t.Errorf("stale: %+v", s)
		}
		want := map[lessor.JobID]lessor.RecoveredStatus{
			reattached.id: lessor.RecoveredReattached, dead.id: lessor.RecoveredDead, stale.id: lessor.RecoveredRunning,
			fresh.id: lessor.RecoveredRunning,
		}
		for _, j := range status.Jobs {
			if want[j.JobID] != j.Status {
				t.Errorf("%s is %s, want %s", j.JobID, j.Status, want[j.JobID])
			}
		}
		if len(status.Jobs) != len(want) ||
			status.Summary != (lessor.RecoverySummary{Total: 4, Reattached: 1, Dead: 1}) {
			t.Errorf("status: %+v", status)
		}
		if metrics.TotalJobs != status.Summary.Total || metrics.ReattachedCount != 1 || metrics.FailedCount != 1 ||
			*metrics.SuccessRate != 0.5 || metrics.LastScan.Sentinels != 4 {
			t.Errorf("metrics: %+v", metrics)
		}
		failed, err := w.monitor.Failed(w.ctx)
		if err != nil || len(failed.FailedJobs) != 1 || failed.FailedJobs[0].JobID != dead.id ||
			!failed.FailedJobs[0].Resumable {
			t.Errorf("failed: %+v, %v", failed, err)
		}
		for _, c := range []*command{reattached, stale, fresh} {
			h, err := w.monitor.Health(w.ctx, c.id)
			if err != nil || h.HeartbeatStatus != verdicts[c.id.String()] || !h.SentinelFileExists ||
				!h.WorkspaceExists || h.SessionDataExists {
				t.Errorf("health: %+v, %v", h, err)
			}
		}
	})
}

func TestHealth(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c, plain := w.command(), w.submit()
		if err := os.WriteFile(filepath.Join(c.folder(), "session-1.jsonl"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := w.monitor.Health(w.ctx, c.id) // without a scan since it began
		if err != nil || h.HeartbeatStatus != lessor.HeartbeatFresh || *h.AgeSeconds != 0 || !h.SessionDataExists ||
			h.Node != "here" {
			t.Errorf("a running command: %+v, %v", h, err)
		}
		h, err = w.monitor.Health(w.ctx, plain.ID)
		if want := (lessor.JobHealth{
			JobID: plain.ID, HeartbeatStatus: lessor.HeartbeatUnknown,
			Node: "here",
		}); err != nil || h != want {
			t.Errorf("a command without a sentinel: %+v, %v", h, err)
		}
		if _, err = w.monitor.Health(w.ctx,
			lessor.JobID{UUID: lessor.UUID{5}}); lessor.CodeOf(err) != lessor.CodeJobNotFound {
			t.Errorf("an unknown job: %v", err)
		}
	})
}

func TestMarkDeadGivesUpAJob(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c := w.command(func(s *lessor.Submission) { s.MaxAttempts = new(int64(1)) })
		h, err := w.monitor.MarkDead(w.ctx, anybody, c.id)
		if err != nil || h.HeartbeatStatus != lessor.HeartbeatDead {
			t.Fatalf("health: %+v, %v", h, err)
		}
		c.wantEnd("Marked dead by an operator")
		if want := "job " + c.id.String() + " is dead: Marked dead by an operator, last pulse at " +
			time.Now().UTC().Format(time.RFC3339); len(w.sentAlerts) != 1 || w.sentAlerts[0].Message != want {
			t.Errorf("alerts: %+v, want %q", w.sentAlerts, want)
		}
		f, err := w.ws.Folder(c.id)
		if err != nil {
			t.Fatal(err)
		}
		if asked, err := f.AskedToStop(c.grant.Lease.Fence); err != nil || !asked {
			t.Errorf("asked to stop: %v, %v", asked, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		w.pass(31 * time.Second)
		if c.exists() {
			t.Error("the folder is still there")
		}
		failed, err := w.monitor.Failed(w.ctx)
		if err != nil || len(failed.FailedJobs) != 1 || !failed.FailedJobs[0].Resumable ||
			failed.FailedJobs[0].Reason != "Marked dead by an operator" {
			t.Errorf("failed: %+v, %v", failed, err)
		}
		w.restart(time.Second) // the end is in the store
		again, err := w.monitor.Failed(w.ctx)
		if err != nil || len(again.FailedJobs) != 1 || again.FailedJobs[0].JobID != c.id ||
			!again.FailedJobs[0].Resumable {
			t.Errorf("failed after a restart: %+v, %v", again, err)
		}
		if _, err := w.monitor.MarkDead(w.ctx, anybody, c.id); lessor.CodeOf(err) != lessor.CodeConflict {
			t.Errorf("marked dead twice: %v", err)
		}
		if _, err := w.monitor.MarkDead(w.ctx, anybody,
			lessor.JobID{UUID: lessor.UUID{5}}); lessor.CodeOf(err) != lessor.CodeJobNotFound {
			t.Errorf("an unknown job: %v", err)
		}
	})
}

// TestMarkOutlivesThePulsesOfItsAttempt checks that a command that pulses while it stops stays given up, that its
// folder goes when it is silent, and that the next attempt is judged anew.
func TestMarkOutlivesThePulsesOfItsAttempt(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		if _, err := w.monitor.MarkDead(w.ctx, anybody, c.id); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w.pass(20 * time.Second)
			c.pulse()
			if h, err := w.monitor.Health(w.ctx, c.id); err != nil || h.HeartbeatStatus != lessor.HeartbeatDead {
				t.Fatalf("health after a pulse: %+v, %v", h, err)
			}
			if all := w.monitor.Cleanups().Cleanups; len(all) != 1 {
				t.Errorf("cleanups: %+v, want one", all)
			}
		}
		w.pass(31 * time.Second)
		if c.exists() {
			t.Error("the folder of a command that is silent is still there")
		}
		w.take(nil).wantVerdict(lessor.HeartbeatFresh)
	})
}

func TestStoppedMonitorSaysSo(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		w.halt()
		w.halt = func() {}
		if err := w.monitor.Scan(w.ctx); lessor.CodeOf(err) != lessor.CodeUnavailable {
			t.Errorf("got %v", err)
		}
	})
}
