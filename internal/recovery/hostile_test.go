package recovery

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lessor"
	"lessor/internal/sentinel"
)

// old is a sentinel that would make its command dead if it counted.
func old(id lessor.JobID, fence int64) string {
	return `{"jobId":"` + id.String() + `","status":"running","lastHeartbeat":"1999-01-01T00:00:00Z","fence":` +
		strconv.FormatInt(fence, 10) + `}`
}

// Whatever is found in the place of a sentinel is reported and has no effect: the live job goes on, no file is removed,
// and no link is followed.
func TestHostileWorkspaceIsOnlyReported(t *testing.T) {
	for name, put := range map[string]func(c *command, at, outside string) error{
		"link to a dead one": func(_ *command, at, outside string) error { return os.Symlink(outside, at) },
		"hard link":          func(_ *command, at, outside string) error { return os.Link(outside, at) },
		"pipe":               func(_ *command, at, _ string) error { return syscall.Mkfifo(at, 0o600) },
		"folder":             func(_ *command, at, _ string) error { return os.Mkdir(at, 0o700) },
		"device": func(c *command, at, _ string) error {
			err := syscall.Mknod(at, syscall.S_IFCHR|0o600, 1<<8|5)
			if errors.Is(err, syscall.EPERM) {
				c.w.t.Skip("making a device needs root")
			}
			return err
		},
		"huge": func(_ *command, at, _ string) error {
			return errors.Join(os.WriteFile(at, nil, 0o600), os.Truncate(at, 1<<40))
		},
		"half-written": func(c *command, at, _ string) error {
			return os.WriteFile(at, []byte(old(c.id, 1))[:60], 0o600)
		},
		"of another job": func(_ *command, at, _ string) error {
			return os.WriteFile(at, []byte(old(lessor.JobID{UUID: lessor.UUID{9}}, 1)), 0o600)
		},
		"id with a path": func(_ *command, at, _ string) error {
			return os.WriteFile(at,
				[]byte(`{"jobId":"../../x","status":"running","lastHeartbeat":"1999-01-01T00:00:00Z"}`), 0o600)
		},
		"session elsewhere": func(c *command, at, _ string) error {
			return os.WriteFile(at, []byte(strings.Replace(old(c.id, c.grant.Lease.Fence), "{",
				`{"sessionId":"../../x",`, 1)), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, settings(), func(t *testing.T, w *world) {
				w.submit()
				c := w.take(longTTL)
				at, outside := filepath.Join(c.folder(), ".sentinel.json"), filepath.Join(w.dir, "outside")
				err := errors.Join(os.Remove(at), os.WriteFile(outside, []byte(old(c.id, c.grant.Lease.Fence)), 0o600),
					put(c, at, outside))
				if err != nil {
					t.Fatal(err)
				}
				w.restart(time.Second)
				w.pass(time.Hour)
				c.want(lessor.Leased)
				snap := w.snapshot()
				if s := snap.Sentinels().Sentinels; len(s) != 1 || s[0].Valid || s[0].Error == nil ||
					s[0].JobID != c.id.String() || s[0].Status != nil {
					t.Errorf("sentinels: %+v", s)
				}
				if sum := snap.Heartbeats().Summary; sum.Invalid != 1 || sum.Dead != 0 {
					t.Errorf("summary: %+v", sum)
				}
				if _, err := os.Stat(outside); err != nil || !c.exists() {
					t.Errorf("something was removed: %v, %v", err, c.exists())
				}
			})
		})
	}
}

// Whatever one folder contains, the monitor watches the others.
func TestOneFolderDoesNotBlindTheMonitor(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		once := func(s *lessor.Submission) { s.MaxAttempts = new(int64(1)) }
		unlockable, refused, garbled := w.command(once), w.command(once), w.command(once)
		w.submit()
		silent := w.take(longTTL)
		unlockable.exit(nil)
		refused.exit(func(e *sentinel.Exit) {
			e.Error, e.WorkerID = strings.Repeat("x", 100_000), strings.Repeat("w", 300)
		})
		err := errors.Join(os.Mkdir(filepath.Join(unlockable.folder(), ".lock"), 0o700),
			os.WriteFile(filepath.Join(garbled.folder(), ".exit.json"), []byte("{"), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		w.restart(time.Second)
		unlockable.want(lessor.Completed)
		refused.want(lessor.Failed)
		w.pass(62 * time.Second)
		garbled.want(lessor.Expired)
		w.pass(10 * time.Minute)
		silent.wantEnd("Heartbeat stopped")
	})
}

func TestRefusalConcernsOneJob(t *testing.T) {
	for want, errs := range map[bool][]error{
		true: {lessor.ErrLeaseNotFound, &lessor.Error{Code: lessor.CodeConflict}},
		false: {
			errors.New("disk"), &lessor.Error{Code: lessor.CodeUnavailable},
			&lessor.Error{Code: lessor.CodeRateLimited},
		},
	} {
		for _, err := range errs {
			if got := isRefusal(err); got != want {
				t.Errorf("%v concerns one job: %v, want %v", err, got, want)
			}
		}
	}
}

func TestFutureSentinelDiesByOurClock(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		w.submit()
		c := w.take(longTTL)
		c.off = 1000 * 24 * time.Hour
		c.pulse()
		w.pass(time.Minute)
		c.wantVerdict(lessor.HeartbeatFresh)
		w.pass(11 * time.Minute)
		c.wantEnd("Heartbeat stopped")
	})
}

func TestFoldersThatAreNoJobsAreReported(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		jobs, outside := filepath.Join(w.ws.Path(), "jobs"), t.TempDir()
		id := lessor.JobID{UUID: lessor.UUID{7}}
		good := []byte(old(id, 1))
		err := errors.Join(
			os.WriteFile(filepath.Join(outside, ".sentinel.json"), good, 0o600),
			os.Symlink(outside, filepath.Join(jobs, id.String())),
			os.Mkdir(filepath.Join(jobs, strings.ToUpper("0196A1B2-0000-7000-8000-00000000000A")), 0o700),
			os.WriteFile(filepath.Join(jobs, "0196A1B2-0000-7000-8000-00000000000A", ".sentinel.json"), good, 0o600),
			os.WriteFile(filepath.Join(jobs, "stray"), good, 0o600),
		)
		if err != nil {
			t.Fatal(err)
		}
		w.pass(time.Hour)
		found := w.snapshot().Sentinels().Sentinels
		if len(found) != 2 || found[0].Valid || found[1].Valid {
			t.Errorf("sentinels: %+v", found)
		}
		if _, err := os.Stat(filepath.Join(outside, ".sentinel.json")); err != nil {
			t.Errorf("a link out of the workspace was followed: %v", err)
		}
	})
}

// Recovery does not depend on process ids, which the system may reuse. The process of the command is dead, and its id
// may be another's: only the sentinel counts.
func TestReusedProcessNumbersHaveNoEffect(t *testing.T) {
	inWorld(t, settings(), func(t *testing.T, w *world) {
		alive, dead := w.command(), w.command()
		gone := exec.Command("true")
		if err := gone.Run(); err != nil {
			t.Skip("no processes here")
		}
		// The ids would mislead: the folder of the live command has that of a process that is gone, and the folder of
		// the dead command has that of this process.
		for c, n := range map[*command]int{alive: gone.Process.Pid, dead: os.Getpid()} {
			raw := strings.Replace(c.raw(), "{", `{"pid":`+strconv.Itoa(n)+`,`, 1)
			if err := os.WriteFile(filepath.Join(c.folder(), ".sentinel.json"), []byte(raw), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w.restart(10 * time.Minute)
		alive.live(6 * time.Minute)
		if j := alive.want(lessor.Running); !j.Reattached {
			t.Error("the live command is not reattached")
		}
		dead.wantEnd("Heartbeat not resumed after restart")
	})
}

func (c *command) raw() string {
	c.w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(c.folder(), ".sentinel.json"))
	if err != nil {
		c.w.t.Fatal(err)
	}
	return string(raw)
}
