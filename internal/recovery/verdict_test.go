package recovery

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/sentinel"
)

func TestVerdictBoundaries(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		w.submit()
		c := w.take(longTTL)
		for _, step := range []struct {
			age  time.Duration
			want lessor.HeartbeatStatus
		}{
			{119_999 * time.Millisecond, lessor.HeartbeatFresh},
			{120 * time.Second, lessor.HeartbeatStale},
			{600 * time.Second, lessor.HeartbeatStale},
			{600_001 * time.Millisecond, lessor.HeartbeatDead},
		} {
			time.Sleep(time.Until(time.UnixMilli(int64(c.grant.Lease.IssuedAt)).Add(step.age)))
			if got := c.known(); got != step.want {
				t.Errorf("at %v without a scan it is %q, want %q", step.age, got, step.want)
			}
			synctest.Wait()
			if got := c.known(); got != step.want {
				t.Errorf("at %v it is %q, want %q", step.age, got, step.want)
			}
		}
		c.wantEnd("Heartbeat stopped")
	})
}

// known is the verdict of the last scan.
func (c *command) known() lessor.HeartbeatStatus {
	for _, j := range c.w.monitor.Known().Heartbeats().Jobs {
		if j.JobID == c.id {
			return j.Status
		}
	}
	return ""
}

func TestEachCrossingAlertsOnceAndClearsOnce(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		w.submit()
		c := w.take(longTTL)
		w.pass(2*time.Minute - aTick)
		w.wantAlerts()
		w.pass(aTick)
		w.wantAlerts("+stale")
		w.pass(5 * time.Minute)
		c.want(lessor.Leased)
		w.wantAlerts()
		c.pulse()
		w.pass(time.Minute)
		w.wantAlerts("-stale")
		w.pass(9*time.Minute + aTick)
		w.wantAlerts("+stale", "-stale", "+dead")
		w.pass(2 * time.Minute)
		w.wantAlerts("-dead")
		if c.exists() {
			t.Error("the folder of a dead command is still there")
		}
	})
}

func TestLeaseWithHeartbeatsIsNeverDead(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		for range 60 { // half an hour without a pulse
			w.pass(30 * time.Second)
			c.beat()
		}
		c.wantVerdict(lessor.HeartbeatStale)
		c.want(lessor.Running)
		w.wantAlerts("+stale")
	})
}

func TestMissingSentinelIsStaleNeverDead(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		w.submit()
		c := w.take(longTTL)
		if err := os.Remove(filepath.Join(c.folder(), ".sentinel.json")); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		c.wantVerdict("")
		w.wantAlerts()
		w.pass(time.Minute)
		c.wantVerdict(lessor.HeartbeatStale)
		w.wantAlerts("+stale")
		w.pass(time.Hour)
		c.wantVerdict(lessor.HeartbeatStale)
		c.want(lessor.Leased)
		w.wantAlerts()
		c.pulse()
		w.pass(time.Minute)
		w.wantAlerts("-stale")
	})
}

// The sentinel of a command that lives and beats is removed: it is reported as missing after two minutes, like one that
// was never there.
func TestRemovedSentinelIsReportedAsMissing(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		c.live(10 * time.Minute)
		if err := os.Remove(filepath.Join(c.folder(), ".sentinel.json")); err != nil {
			t.Fatal(err)
		}
		beats := func(d time.Duration) {
			for ; d > 0; d -= 20 * time.Second {
				w.pass(20 * time.Second)
				c.beat()
			}
		}
		beats(100 * time.Second)
		w.wantAlerts()
		c.wantVerdict("")
		beats(20 * time.Second)
		since := time.Now().Add(-2 * time.Minute).UTC().Format(time.RFC3339)
		if want := "its sentinel is missing since " + since + "; its lease lives"; len(w.sentAlerts) != 1 ||
			!strings.Contains(w.sentAlerts[0].Message, want) {
			t.Errorf("alerts: %+v, want %q", w.sentAlerts, want)
		}
		beats(20 * time.Minute)
		c.wantVerdict(lessor.HeartbeatStale)
		c.want(lessor.Running)
		c.pulse()
		c.live(time.Minute)
		w.wantAlerts("+stale", "-stale")
	})
}

func TestLowerFenceChangesNothing(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		w.submit()
		c := w.take(longTTL)
		c.write(sentinel.Sentinel{
			JobID: c.id, Status: sentinel.Running,
			LastHeartbeat: lessor.At(time.Now().Add(-time.Hour)), Fence: c.grant.Lease.Fence - 1,
		})
		w.pass(time.Hour)
		c.want(lessor.Leased)
		if !c.exists() {
			t.Error("the folder of the live attempt was removed because of an older one")
		}
		c.wantVerdict(lessor.HeartbeatDead) // this is the verdict on the file, not on the job
	})
}

func TestOtherWorkspacesAreLeftAlone(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		w.submit()
		c := w.take(func(r *lessor.LeaseRequest) {
			longTTL(r)
			r.WorkspaceID = new("elsewhere")
		})
		w.pass(time.Hour)
		c.want(lessor.Leased)
	})
}

// The clock of the command or of the server is a day off, or is set by a day while they run: a live command is never
// dead. A dead one is stale after stale_after and dead after dead_after.
func TestClockSteps(t *testing.T) {
	const day = 24 * time.Hour
	for name, offs := range map[string][2]time.Duration{
		"behind": {-day, -day}, "ahead": {day, day}, "set ahead": {0, day}, "set back": {0, -day},
		"set right from behind": {-day, 0}, "set right from ahead": {day, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, settings(), func(t *testing.T, w *world) {
				w.submit()
				c := w.take(longTTL)
				c.off = offs[0]
				c.pulse()
				c.live(5 * time.Minute)
				c.off = offs[1]
				c.live(20 * time.Minute)
				c.want(lessor.Running)
				c.wantVerdict(lessor.HeartbeatFresh)
				w.restart(time.Second)
				c.live(20 * time.Minute)
				if j := c.want(lessor.Running); !j.Reattached {
					t.Error("the command is not reattached")
				}
				c.wantVerdict(lessor.HeartbeatFresh)
				w.pass(4 * time.Minute) // the check may come one scan after the last pulse
				if got := c.verdict(); got == lessor.HeartbeatFresh {
					t.Errorf("a command that is silent for 4 minutes is %s", got)
				}
				w.pass(8 * time.Minute)
				c.wantEnd("Heartbeat stopped")
			})
		})
	}
}

func TestHungCommandIsAskedToStop(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		c := w.command(func(s *lessor.Submission) { s.MaxAttempts = new(int64(1)) })
		w.pass(30 * time.Second)
		c.pulse()
		w.pass(30 * time.Second)
		c.pulse()
		w.pass(30 * time.Second) // the lease has expired
		c.pulse()
		w.pass(time.Minute)
		c.want(lessor.Expired)
		w.wantAlerts("+hung")
		shown := w.snapshot().Sentinels().Sentinels
		if len(shown) != 1 || !shown[0].Hung || *shown[0].Status != lessor.HeartbeatFresh {
			t.Errorf("sentinels: %+v", shown)
		}
		f, err := w.ws.Folder(c.id)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := f.AskedToStop(c.grant.Lease.Fence)
		if next, _ := f.AskedToStop(c.grant.Lease.Fence + 1); err != nil || !asked || next {
			t.Errorf("asked to stop: %v (%v), the next attempt: %v", asked, err, next)
		}
		if err := f.RemoveSentinel(); err != nil { // the command stops
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		w.wantAlerts("-hung")
	})
}

// A sentinel with only the fields of the specification is judged like any other.
func TestSentinelWithoutAFenceIsOfTheLiveLease(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		plain := func(c *command) {
			c.write(sentinel.Sentinel{
				JobID: c.id, Status: sentinel.Running, LastHeartbeat: lessor.At(time.Now()),
				AgentEngine: "agent",
			})
		}
		w.submit()
		dead := w.take(longTTL)
		plain(dead)
		hung := w.command(func(s *lessor.Submission) { s.MaxAttempts = new(int64(1)) })
		for range 5 {
			plain(hung)
			w.pass(30 * time.Second)
		}
		hung.want(lessor.Expired)
		for _, s := range w.snapshot().Sentinels().Sentinels {
			if s.Hung != (s.JobID == hung.id.String()) {
				t.Errorf("sentinel: %+v", s)
			}
		}
		w.pass(8 * time.Minute)
		dead.wantEnd("Heartbeat stopped")
	})
}

func TestCompletedCommandIsNotCalledHung(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		if err := w.Complete(w.ctx, anybody, c.grant.Lease.ID,
			lessor.Completion{WorkerID: new("worker"), Status: new("completed")}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		w.wantAlerts()
	})
}

func (w *world) submit() lessor.Job {
	w.t.Helper()
	r, err := w.Submit(w.ctx, anybody, lessor.Submission{Type: new("long")})
	if err != nil {
		w.t.Fatal(err)
	}
	return r.Job
}
