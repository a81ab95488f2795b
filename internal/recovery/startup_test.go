package recovery

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
)

func TestUnseenEndIsCompleted(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(*sentinel.Exit)
		state lessor.State
	}{
		"completed": {nil, lessor.Completed},
		"failed": {func(e *sentinel.Exit) {
			e.Status, e.Error = lessor.Failed, "exit status 3"
		}, lessor.Failed},
		"cancelled, though not asked": {func(e *sentinel.Exit) { e.Status = lessor.Cancelled }, lessor.Failed},
		"of another lease":            {func(e *sentinel.Exit) { e.LeaseID = lessor.LeaseID(e.JobID) }, lessor.Leased},
		"of an older attempt":         {func(e *sentinel.Exit) { e.Fence-- }, lessor.Leased},
		"of a fence never given":      {func(e *sentinel.Exit) { e.Fence++ }, lessor.Leased},
	} {
		t.Run(name, func(t *testing.T) {
			run := inWorld
			if c.state == lessor.Completed {
				run = onEachStore
			}
			run(t, settings(), func(t *testing.T, w *world) {
				cmd := w.command(func(s *lessor.Submission) { s.MaxAttempts = new(int64(1)) })
				w.halt()
				time.Sleep(2 * time.Hour)
				cmd.exit(c.edit)
				if err := os.Remove(filepath.Join(cmd.folder(), ".sentinel.json")); err != nil {
					t.Fatal(err)
				}
				w.start()
				j := cmd.want(c.state)
				if c.state == lessor.Completed && string(j.Result) != `{"n":1}` {
					t.Errorf("result %s", j.Result)
				}
			})
		})
	}
}

// The shim was killed after it wrote the exit record and before it removed the sentinel.
func TestExitRecordCountsThoughTheSentinelIsFresh(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		c.exit(nil)
		w.restart(time.Second)
		c.want(lessor.Completed)
		if _, err := os.Lstat(filepath.Join(c.folder(), ".sentinel.json")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the sentinel of an ended command: %v", err)
		}
	})
}

// A shim is killed so while the server runs, at any moment between two scans: the record is found before the lease
// ends.
func TestExitRecordIsFoundBeforeTheLeaseEnds(t *testing.T) {
	at := func(before time.Duration) func(t *testing.T, w *world) {
		return func(t *testing.T, w *world) {
			w.pass(before)
			c := w.command()
			w.pass(5 * time.Second)
			c.beat()
			w.pass(5 * time.Second)
			c.pulse()
			c.exit(nil)
			w.pass(time.Minute)
			if j := c.want(lessor.Completed); j.Attempt != 1 {
				t.Errorf("the job completed in attempt %d", j.Attempt)
			}
		}
	}
	for before := time.Duration(0); before < time.Minute; before += 7 * time.Second {
		inWorld(t, settings(), at(before))
	}
	onEachStore(t, settings(), at(20*time.Second))
}

// An exit record counts until the end of its lease, even if the last heartbeat was long ago.
func TestLateExitRecordIsFoundBeforeTheLeaseEnds(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		w.pass(59500 * time.Millisecond)
		c.exit(nil)
		w.pass(3 * time.Second)
		c.want(lessor.Completed)
	})
}

// The shim's own report, if it arrives later, gets the same answer.
func TestReportAfterTheExitRecordIsAccepted(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		c.exit(nil)
		w.pass(45 * time.Second)
		c.want(lessor.Completed)
		if err := w.Complete(w.ctx, anybody, c.grant.Lease.ID,
			lessor.Completion{
				WorkerID: new("worker"), Status: new("completed"),
				Result: []byte(`{"n":1}`),
			}); err != nil {
			t.Errorf("the shim's own report: %v", err)
		}
	})
}

func TestWatchesRunSideBySide(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		lost, pulses, beats := w.command(), w.command(), w.command()
		w.restart(20 * time.Minute)
		st := w.snapshot().Status()
		if st.Recovery.State != lessor.RecoveryWatching ||
			st.Summary != (lessor.RecoverySummary{Total: 3, Watching: 3}) {
			t.Fatalf("status: %+v", st)
		}
		if want := lessor.At(time.Now().Add(5 * time.Minute / w.pace)); st.Jobs[0].WatchDeadline != want {
			t.Errorf("deadline %s, want %s", st.Jobs[0].WatchDeadline, want)
		}
		w.pass(2 * time.Minute) // longer than a ttl: the leases are kept
		for _, c := range []*command{lost, pulses, beats} {
			c.want(lessor.Leased)
		}
		pulses.pulse()
		beats.beat()
		w.pass(10 * time.Second)
		for _, c := range []*command{pulses, beats} {
			if j := c.want(lessor.Running); !j.Reattached || j.LeaseID == nil || *j.LeaseID != c.grant.Lease.ID {
				t.Errorf("job: %+v", j)
			}
		}
		w.wantAlerts("+stale") // for the command that beats and does not pulse; a watched job raises none
		for range 17 {
			w.pass(10 * time.Second)
			pulses.pulse()
			pulses.beat()
			beats.beat()
		}
		w.pass(0)
		lost.wantEnd("Heartbeat not resumed after restart")
		w.pass(aTick)
		st = w.snapshot().Status()
		if st.Recovery.State != lessor.RecoveryCompleted || st.Recovery.CompletedAt == 0 ||
			st.Summary != (lessor.RecoverySummary{Total: 3, Reattached: 2, Dead: 1}) {
			t.Errorf("status: %+v", st)
		}
		m := w.snapshot().Metrics()
		if m.ReattachedCount != 2 || m.FailedCount != 1 || *m.SuccessRate != 2./3 ||
			*m.AverageReattachSeconds != 130/float64(w.pace) {
			t.Errorf("metrics: %+v", m)
		}
		w.pass(31 * time.Second)
		if lost.exists() {
			t.Error("the folder of the dead command is still there")
		}
	})
}

func TestTooOldIsDeadUnlessItsLeaseGetsHeartbeats(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		lost, beats, pulses := w.command(), w.command(), w.command()
		w.restart(31 * time.Minute)
		w.pass(30 * time.Second)
		beats.beat()
		pulses.pulse()
		w.pass(29 * time.Second)
		lost.want(lessor.Leased)
		w.pass(time.Second)
		lost.wantEnd("Server restart, heartbeat not resumed")
		for _, c := range []*command{beats, pulses} {
			if j := c.want(lessor.Running); !j.Reattached {
				t.Error("a command that showed a sign of life is not reattached")
			}
		}
	})
}

func TestBoundaryOfTheLimit(t *testing.T) {
	for age, why := range map[time.Duration]string{
		30*time.Minute - time.Millisecond: "Heartbeat not resumed after restart",
		30 * time.Minute:                  "Server restart, heartbeat not resumed",
	} {
		inWorld(t, settings(), func(t *testing.T, w *world) {
			c := w.command()
			w.restart(age)
			w.pass(5*time.Minute + time.Second)
			c.wantEnd(why)
		})
	}
}

func TestStartWithoutCommandsIsIdle(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		st := w.snapshot().Status()
		if st.Recovery != (lessor.RecoveryProgress{State: lessor.RecoveryIdle}) || len(st.Jobs) != 0 {
			t.Errorf("status: %+v", st)
		}
		if m := w.snapshot().Metrics(); m.SuccessRate != nil || m.AverageReattachSeconds != nil || m.LastScan.At == 0 {
			t.Errorf("metrics: %+v", m)
		}
	})
}

// The command died, its attempt was given up, and then it pulses again: no job changes, and the command is
// asked to stop.
func TestPulseOfADeadCommandChangesNothing(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c := w.command()
		w.restart(10 * time.Minute)
		w.pass(5*time.Minute + 500*time.Millisecond)
		c.wantEnd("Heartbeat not resumed after restart")
		next := w.leaseAgain(c)
		c.pulse()
		w.pass(time.Minute)
		next.want(lessor.Leased)
		if !c.exists() {
			t.Error("the folder was removed although the command pulses")
		}
	})
}

// leaseAgain leases the job of c again, elsewhere.
func (w *world) leaseAgain(c *command) *command {
	w.t.Helper()
	time.Sleep(time.Second)
	grants, denial, err := w.Request(w.ctx, anybody,
		lessor.LeaseRequest{WorkerID: new("other"), TTLMS: new(int64(600_000)), WaitMS: new(int64(5000))})
	if err != nil || denial != nil || grants[0].Job.ID != c.id {
		w.t.Fatalf("not leased again: %+v %v", denial, err)
	}
	return &command{w: w, grant: grants[0], id: c.id}
}

func TestAlertsFromBeforeTheRestartAreCleared(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		w.submit()
		c := w.take(longTTL)
		w.pass(3 * time.Minute)
		w.wantAlerts("+stale")
		w.halt()
		c.exit(nil)
		if err := os.Remove(filepath.Join(c.folder(), ".sentinel.json")); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.wantAlerts("-stale")
	})
}

// TestAlertsAboutPurgedJobsAreCleared: nobody can look at the job any more, after a long time without the server.
func TestAlertsAboutPurgedJobsAreCleared(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		w.submit()
		stale := w.take(longTTL)
		w.pass(3 * time.Minute)
		w.wantAlerts("+stale")
		done := lessor.Completion{WorkerID: &stale.grant.Lease.WorkerID, Status: new("completed")}
		if err := w.Complete(w.ctx, anybody, stale.grant.Lease.ID, done); err != nil {
			t.Fatal(err)
		}
		job := w.submit()
		held := w.take(longTTL)
		r := lessor.Release{WorkerID: &held.grant.Lease.WorkerID, Reason: new(lessor.ReleaseFolderHeld)}
		if err := w.Release(w.ctx, anybody, held.grant.Lease.ID, r); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Cancel(w.ctx, anybody, job.ID, false); err != nil {
			t.Fatal(err)
		}
		w.halt()
		w.wantAlerts("+hung")
		for _, c := range []*command{stale, held} {
			c.exit(nil)
			if err := os.RemoveAll(c.folder()); err != nil {
				t.Fatal(err)
			}
		}
		w.purge(2)
		w.start()
		w.wantAlerts("-stale", "-hung")
	})
}

// purge removes n jobs that have ended from the store of a server that is stopped.
func (w *world) purge(n int) {
	w.t.Helper()
	store, err := w.open(w)
	if err != nil {
		w.t.Fatal(err)
	}
	purged := 0
	err = store.Update(w.ctx, func(tx scheduler.Tx) (err error) {
		purged, err = tx.Purge(w.ctx, tx.Now().Add(time.Hour), n+1)
		return err
	})
	if err = errors.Join(err, store.Close()); err != nil || purged != n {
		w.t.Fatalf("%d jobs were purged, want %d (%v)", purged, n, err)
	}
}
