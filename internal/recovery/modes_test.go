package recovery

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"lessor"
)

// The five failure modes and the success criteria of the specification, in its words.

func TestFailureMode1HeartbeatWriteFails(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		for range 9 { // the disk is full: heartbeats are sent, no pulse is written
			w.pass(20 * time.Second)
			c.beat()
		}
		w.wantAlerts("+stale")
		if s := w.snapshot().Stale().StaleJobs; len(s) != 1 || s[0].RecommendedAction != "investigate" {
			t.Errorf("stale: %+v", s)
		}
		c.want(lessor.Running)
		c.pulse() // there is space again
		w.pass(30 * time.Second)
		c.beat()
		w.pass(30 * time.Second)
		w.wantAlerts("-stale")
	})
}

func TestFailureMode2HeartbeatThreadBlocked(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		w.submit()
		c := w.take(longTTL)
		c.live(5 * time.Minute)
		w.wantAlerts()
		w.pass(2 * time.Minute)
		w.wantAlerts("+stale")
		w.pass(8*time.Minute + aTick)
		w.wantAlerts("-stale", "+dead")
		c.wantEnd("Heartbeat stopped")
	})
}

func TestFailureMode3CrashWithoutCleanup(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		c := w.command(func(s *lessor.Submission) { s.MaxAttempts = new(int64(1)) })
		c.live(5 * time.Minute)
		w.pass(11 * time.Minute) // it is dead within eleven minutes, whenever the scans come
		if c.exists() {
			t.Error("the folder of a crashed command is still there")
		}
		c.want(lessor.Expired) // its lease ended first
		if all := w.monitor.Cleanups().Cleanups; len(all) != 1 || all[0].Status != lessor.CleanupDone {
			t.Errorf("cleanups: %+v", all)
		}
	})
}

func TestFailureMode4RestartWhileTheJobRuns(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		w.restart(20 * time.Minute)
		c.wantVerdict(lessor.HeartbeatStale) // the pulse is old; the server's downtime is not counted
		if got := w.status(c.id); got != lessor.RecoveredWatching {
			t.Errorf("the command is %s", got)
		}
		w.pass(4 * time.Minute)
		c.pulse()
		w.pass(10 * time.Second)
		if j := c.want(lessor.Running); !j.Reattached {
			t.Error("the command is not shown as reattached")
		}
		c.live(10 * time.Minute) // monitoring goes on
		c.wantVerdict(lessor.HeartbeatFresh)
	})
}

func TestFailureMode5RestartAfterTheJobDied(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		w.restart(20 * time.Minute)
		w.pass(5*time.Minute - aTick)
		c.want(lessor.Leased)
		w.pass(aTick)
		c.wantEnd("Heartbeat not resumed after restart")
		w.wantAlerts("+dead")
		if all := w.monitor.Cleanups().Cleanups; len(all) != 1 || all[0].Status != lessor.CleanupScheduled {
			t.Errorf("cleanups: %+v", all)
		}
	})
}

func TestStaleIsDetectedWithinTwoMinutes(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		w.submit()
		c := w.take(longTTL)
		c.live(95 * time.Second) // out of step with the scans
		stopped := c.lastPulse()
		time.Sleep(time.Until(stopped.Add(2 * time.Minute)))
		w.pass(0)
		w.wantAlerts("+stale")
	})
}

func TestDeadIsDetectedWithinElevenMinutes(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		w.submit()
		c := w.take(longTTL)
		c.live(95 * time.Second)
		time.Sleep(time.Until(c.lastPulse().Add(11 * time.Minute)))
		w.pass(0)
		c.wantEnd("Heartbeat stopped")
	})
}

func TestRunningJobsAreFoundWithinFiveMinutesOfARestart(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		all := []*command{w.command(), w.command(), w.command()}
		w.restart(15 * time.Minute)
		for i, c := range all { // each comes back at its own time
			w.pass(time.Duration(i+1) * 45 * time.Second)
			c.pulse()
		}
		w.pass(10 * time.Second)
		if m := w.snapshot().Metrics(); m.ReattachedCount != 3 || *m.SuccessRate != 1 {
			t.Errorf("metrics: %+v", m)
		}
	})
}

func (c *command) lastPulse() time.Time {
	c.w.t.Helper()
	f, err := c.w.ws.Folder(c.id)
	if err != nil {
		c.w.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	s, err := f.Sentinel()
	if err != nil {
		c.w.t.Fatal(err)
	}
	return s.LastHeartbeat.Time()
}

// The session data in the folder of a command stay while the command lives, and are removed only with the folder.
func TestSessionDataStaysWhileTheJobLives(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		data := filepath.Join(c.folder(), "session-1.jsonl")
		if err := os.WriteFile(data, []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.restart(10 * time.Minute)
		c.pulse()
		c.live(10 * time.Minute)
		if _, err := os.Stat(data); err != nil {
			t.Error(err)
		}
	})
}
