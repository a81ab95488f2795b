package recovery

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lessor"
	"lessor/internal/sentinel"
)

// dead makes a command whose sentinel has just been found dead, with its cleanup scheduled.
func (w *world) dead() *command {
	w.t.Helper()
	w.submit()
	c := w.take(longTTL)
	w.pass(10*time.Minute + time.Millisecond)
	c.wantEnd("Heartbeat stopped")
	return c
}

func (w *world) wantCleanup(want lessor.CleanupState, reason string) {
	w.t.Helper()
	all := w.monitor.Cleanups().Cleanups
	if len(all) != 1 || all[0].Status != want || text(all[0].Reason) != reason {
		w.t.Errorf("cleanups %+v, want one that is %s %q", all, want, reason)
	}
}

func TestCleanupRemovesTheFolderAndNothingElse(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c := w.dead()
		outside := filepath.Join(w.dir, "precious")
		err := errors.Join(os.Mkdir(outside, 0o700), os.WriteFile(filepath.Join(outside, "data"), []byte("x"), 0o600),
			os.Symlink(outside, filepath.Join(c.folder(), "link")),
			os.MkdirAll(filepath.Join(c.folder(), "a", "b"), 0o700),
			os.Symlink(filepath.Join(outside, "data"), filepath.Join(c.folder(), "a", "b", "data")))
		if err != nil {
			t.Fatal(err)
		}
		w.wantCleanup(lessor.CleanupScheduled, "")
		w.pass(30*time.Second - 2*time.Millisecond)
		if !c.exists() {
			t.Error("the folder was removed early")
		}
		w.pass(2 * time.Millisecond)
		w.wantCleanup(lessor.CleanupDone, "")
		if c.exists() {
			t.Error("the folder is still there")
		}
		if _, err := os.Stat(filepath.Join(outside, "data")); err != nil {
			t.Errorf("what a link led to: %v", err)
		}
		if _, err := w.Job(w.ctx, anybody, c.id); err != nil {
			t.Errorf("the record: %v", err)
		}
	})
}

func TestCleanupIsDropped(t *testing.T) {
	for reason, change := range map[string]func(c *command){
		"it pulses again":        func(c *command) { c.pulse() },
		"a newer attempt exists": func(c *command) { c.w.leaseAgain(c) },
		"the sentinel is gone":   func(c *command) { _ = os.Remove(filepath.Join(c.folder(), ".sentinel.json")) },
		"the sentinel is not obeyed": func(c *command) {
			_ = os.WriteFile(filepath.Join(c.folder(), ".sentinel.json"), []byte("{"), 0o600)
		},
		"the folder is gone, or another's": func(c *command) {
			_ = errors.Join(os.Rename(c.folder(), c.folder()+"x"), os.Symlink(c.folder()+"x", c.folder()))
		},
		"an attempt holds the folder": func(c *command) { c.lock() },
	} {
		t.Run(reason, func(t *testing.T) {
			inWorld(t, settings(), func(t *testing.T, w *world) {
				c := w.dead()
				change(c)
				w.pass(30 * time.Second)
				w.wantCleanup(lessor.CleanupDropped, reason)
				if !c.exists() {
					t.Error("the folder was removed")
				}
			})
		})
	}
}

func TestCleanupThatFailsIsTriedAgain(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		c := w.dead()
		lock := filepath.Join(c.folder(), ".lock")
		if err := os.Mkdir(lock, 0o700); err != nil { // nothing that can be locked
			t.Fatal(err)
		}
		w.pass(30 * time.Second)
		all := w.monitor.Cleanups().Cleanups
		if len(all) != 1 || all[0].Status != lessor.CleanupFailed || all[0].Reason == nil || !c.exists() {
			t.Fatalf("cleanups: %+v", all)
		}
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		w.wantCleanup(lessor.CleanupDone, "")
		if c.exists() {
			t.Error("the folder is still there")
		}
	})
}

// lock holds the folder until the test ends, as a shim would.
func (c *command) lock() {
	c.w.t.Helper()
	f, err := c.w.ws.Folder(c.id)
	if err != nil {
		c.w.t.Fatal(err)
	}
	held, err := f.Lock()
	if err != nil || held == nil {
		c.w.t.Fatalf("not locked: %v", err)
	}
	c.w.t.Cleanup(func() { _ = errors.Join(held.Close(), f.Close()) })
}

func TestUnknownJobsAreCleanedOnlyIfAsked(t *testing.T) {
	for _, asked := range []bool{false, true} {
		cfg := settings()
		cfg.CleanUnknown = asked
		inWorld(t, cfg, func(t *testing.T, w *world) {
			c := &command{w: w, id: lessor.JobID{UUID: lessor.UUID{1}}}
			c.write(sentinel.Sentinel{
				JobID: c.id, Status: sentinel.Running, LastHeartbeat: lessor.At(time.Now()),
				Seq: 1,
			})
			w.pass(time.Minute)
			if s := w.snapshot().Sentinels().Sentinels; len(s) != 1 || s[0].Known || !s[0].Valid ||
				*s[0].Status != lessor.HeartbeatFresh {
				t.Errorf("sentinels: %+v", s)
			}
			w.pass(11 * time.Minute)
			if c.exists() == asked {
				t.Errorf("clean_unknown is %v, and the folder is there: %v", asked, c.exists())
			}
		})
	}
}

func TestFoldersOfEndedJobsAreKeptForAWhile(t *testing.T) {
	cfg := settings()
	cfg.Keep = time.Hour
	inWorld(t, cfg, func(t *testing.T, w *world) {
		ended, running := w.command(), w.command()
		ended.exit(nil)
		if err := w.Complete(w.ctx, anybody, ended.grant.Lease.ID,
			lessor.Completion{WorkerID: new("worker"), Status: new("completed")}); err != nil {
			t.Fatal(err)
		}
		f, err := w.ws.Folder(ended.id)
		if err != nil || f.RemoveSentinel() != nil || f.Close() != nil {
			t.Fatal("the sentinel is not removed", err)
		}
		running.live(59 * time.Minute)
		if !ended.exists() {
			t.Error("the folder of an ended job went early")
		}
		running.live(10 * time.Minute)
		if ended.exists() || !running.exists() {
			t.Errorf("there are: ended %v, running %v", ended.exists(), running.exists())
		}
	})
}
