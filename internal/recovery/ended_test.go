package recovery

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/internal/sentinel"
)

// The sentinel of a job that has ended stays behind, because its shim was killed: there is nothing to recover, and no
// alert. The folder is removed as that of any dead command.
func TestEndedJobRaisesNothing(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		completed, cancelled := w.command(), w.command()
		failed := w.command(func(s *lessor.Submission) { s.MaxAttempts = new(int64(1)) })
		if _, err := w.Cancel(w.ctx, anybody, cancelled.id, true); err != nil {
			t.Fatal(err)
		}
		for c, status := range map[*command]string{completed: "completed", failed: "failed"} {
			if err := w.Complete(w.ctx, anybody, c.grant.Lease.ID,
				lessor.Completion{WorkerID: new("worker"), Status: &status}); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range []struct {
			pass time.Duration
			want lessor.RecoveredStatus // of the one that failed
		}{
			{time.Minute, lessor.RecoveredFailed},
			{2 * time.Minute, lessor.RecoveredFailed},
			{7*time.Minute + 10*time.Second, lessor.RecoveredDead},
		} {
			w.pass(step.pass)
			w.wantAlerts()
			snap, err := w.monitor.Snapshot(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range snap.Stale().StaleJobs {
				if j.JobID != failed.id {
					t.Errorf("a job that has ended is stale: %+v", j)
				}
			}
			if a, b, c := w.status(completed.id), w.status(cancelled.id), w.status(failed.id); a != "" || b != "" ||
				c != step.want {
				t.Errorf("completed %q, cancelled %q, failed %q", a, b, c)
			}
		}
		w.pass(time.Minute)
		w.wantAlerts()
		if completed.exists() || cancelled.exists() || failed.exists() {
			t.Error("a folder is still there")
		}
	})
}

// A command that was reattached and then completed is still listed as reattached.
func TestCompletedAfterItsReattachmentIsReattached(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		w.restart(time.Second)
		c.pulse()
		w.pass(10 * time.Second)
		if err := w.Complete(w.ctx, anybody, c.grant.Lease.ID,
			lessor.Completion{WorkerID: new("worker"), Status: new("completed")}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		if got := w.status(c.id); got != lessor.RecoveredReattached {
			t.Errorf("it is %q", got)
		}
	})
}

// A job that the store does not know is judged like any other.
func TestUnknownJobThatPulsesIsRunning(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c := &command{w: w, id: lessor.JobID{UUID: lessor.UUID{1}}}
		c.pulse()
		for _, step := range []struct {
			pass    time.Duration
			verdict lessor.HeartbeatStatus
			status  lessor.RecoveredStatus
		}{
			{time.Minute, lessor.HeartbeatFresh, lessor.RecoveredRunning},
			{2 * time.Minute, lessor.HeartbeatStale, lessor.RecoveredRunning},
			{8 * time.Minute, lessor.HeartbeatDead, lessor.RecoveredDead},
		} {
			w.pass(step.pass)
			c.wantVerdict(step.verdict)
			if got := w.status(c.id); got != step.status {
				t.Errorf("a %s sentinel is %q, want %q", step.verdict, got, step.status)
			}
		}
		w.wantAlerts("+stale", "-stale", "+dead")
		c.pulse()
		w.pass(time.Minute)
		if got := w.status(c.id); got != lessor.RecoveredRunning {
			t.Errorf("a command that pulses again is %q", got)
		}
	})
}

// A time that no clock can have written says nothing about a command, least of all that it is dead.
func TestFarTimesAreInvalidSentinels(t *testing.T) {
	cfg := settings()
	cfg.CleanUnknown = true
	inWorld(t, cfg, func(t *testing.T, w *world) {
		for i, year := range []string{"1600", "2400", "9999"} {
			c := &command{w: w, id: lessor.JobID{UUID: lessor.UUID{byte(i + 1)}}}
			c.pulse()
			name := filepath.Join(c.folder(), ".sentinel.json")
			data, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(name, []byte(strings.ReplaceAll(string(data), "\"2000-", "\""+year+"-")), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.pass(20 * time.Minute)
			if !c.exists() {
				t.Errorf("year %s: the folder was removed", year)
			}
		}
		for _, s := range w.snapshot().Sentinels().Sentinels {
			if s.Valid || s.Error == nil || !strings.HasPrefix(*s.Error, string(sentinel.Malformed)) {
				t.Errorf("sentinel: %+v", s)
			}
		}
		if got := w.snapshot().Heartbeats(); got.Summary != (lessor.HeartbeatSummary{Invalid: 3}) {
			t.Errorf("heartbeats: %+v", got)
		}
		w.wantAlerts()
	})
}

func TestHealthAndHeartbeatsAgreeOnAMissingSentinel(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		w.submit()
		c := w.take(longTTL)
		if err := os.RemoveAll(c.folder()); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			pass   time.Duration
			want   lessor.HeartbeatStatus
			listed lessor.HeartbeatStatus
		}{
			{119 * time.Second, lessor.HeartbeatUnknown, ""},
			{time.Second, lessor.HeartbeatStale, lessor.HeartbeatStale},
			{time.Hour, lessor.HeartbeatStale, lessor.HeartbeatStale},
		} {
			w.pass(step.pass)
			c.wantVerdict(step.listed)
			h, err := w.monitor.Health(w.ctx, c.id)
			if err != nil || h.HeartbeatStatus != step.want || h.LastHeartbeat != 0 || h.SentinelFileExists ||
				(h.AgeSeconds != nil) != (step.listed != "") {
				t.Errorf("health: %+v, %v; want %s", h, err, step.want)
			}
		}
	})
}
