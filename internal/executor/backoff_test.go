package executor

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lessor"
)

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *logBuffer) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), part)
}

// countEntries counts the entries of a job's record that have a reason.
func (b *bench) countEntries(id lessor.JobID, reason string) (n int) {
	b.t.Helper()
	for e, err := range b.client.AllEvents(b.t.Context(), id) {
		if err != nil {
			b.t.Fatal(err)
		}
		if e.Reason == reason {
			n++
		}
	}
	return n
}

// wantUntouched fails the test unless a job has had no attempt and no interruption yet.
func (b *bench) wantUntouched(id lessor.JobID) {
	b.t.Helper()
	j, err := b.client.Job(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	begun := j.State != lessor.Queued && j.State != lessor.Leased
	if begun || j.Interruptions != 0 || j.LeaseID == nil && j.Attempt != 0 {
		b.t.Errorf("the job is %s at attempt %d after %d interruptions, want it as it was submitted",
			j.State, j.Attempt, j.Interruptions)
	}
}

// mountWorkspace gives the workspace a file system of this size. The last shim lets go of its folder shortly before its
// process ends, and uses the file system until then.
func (b *bench) mountWorkspace(size string) {
	b.t.Helper()
	if err := syscall.Mount("tmpfs", b.workspace, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		b.t.Skipf("mounting a small file system: %v", err)
	}
	b.t.Cleanup(func() {
		b.endShims()
		await(b.t, "the last shim's process to end", func() bool {
			err := syscall.Unmount(b.workspace, 0)
			if err != nil && !errors.Is(err, syscall.EBUSY) {
				b.t.Fatal(err)
			}
			return err == nil
		})
	})
}

// TestFullDiskCostsJobsNothing runs a worker on a full disk: it backs off, logs the reason once, and starts jobs when
// there is space.
func TestFullDiskCostsJobsNothing(t *testing.T) {
	b := newBench(t, 5*time.Second)
	b.mountWorkspace("1m")
	var log logBuffer
	stop := b.work(func(c *Config) { c.Concurrency, c.Log = 3, slog.New(slog.NewTextHandler(&log, nil)) }, "echo ran")
	full := filepath.Join(b.workspace, "full")
	_ = os.WriteFile(full, make([]byte, 2<<20), 0o600) // writes what fits
	var ids []lessor.JobID
	for range 6 {
		ids = append(ids, b.submit("{}"))
	}
	releases := func() (n int) {
		for _, id := range ids {
			n += b.countEntries(id, lessor.ReleaseCannotStart)
		}
		return n
	}
	await(t, "the first to be given back", func() bool { return releases() > 0 })
	time.Sleep(3 * time.Second) // without a pause, three slots would take and return all jobs many times
	if n := releases(); n > 6 {
		t.Errorf("jobs were given back %d times in 3 s, want at most 6", n)
	}
	for _, id := range ids {
		b.wantUntouched(id)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if j := b.awaitState(id, lessor.Completed); j.Attempt != 1 || j.Interruptions != 0 {
			t.Errorf("completed at attempt %d after %d interruptions, want 1 after 0", j.Attempt, j.Interruptions)
		}
	}
	stop()
	warned, resumed := log.count("jobs cannot be started here"), log.count("jobs can be started again")
	if warned != 1 || resumed != 1 {
		t.Errorf("logged %d times that jobs cannot be started and %d times that they can, want once each:\n%s",
			warned, resumed, log.all.String())
	}
	if log.count("no space left") == 0 {
		t.Errorf("the log lacks the reason, no space left:\n%s", log.all.String())
	}
}

// TestReadOnlyDiskCostsJobsNothing runs a worker whose workspace has become read-only.
func TestReadOnlyDiskCostsJobsNothing(t *testing.T) {
	b := newBench(t, 5*time.Second)
	b.mountWorkspace("1m")
	id := b.submit("{}")
	b.folder(id)
	remount := func(flags uintptr) {
		if err := syscall.Mount("", b.workspace, "", syscall.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	remount(syscall.MS_RDONLY)
	b.work(nil, "echo ran")
	await(t, "the job to be given back", func() bool { return b.countEntries(id, lessor.ReleaseCannotStart) > 0 })
	b.wantUntouched(id)
	remount(0)
	if j := b.awaitState(id, lessor.Completed); j.Attempt != 1 || j.Interruptions != 0 {
		t.Errorf("completed at attempt %d after %d interruptions, want 1 after 0", j.Attempt, j.Interruptions)
	}
}

// TestSpoiledFolderFailsTheAttempt runs commands whose folders cannot be used by the next attempts. Such a job must
// come to its end, and not be given back for ever.
func TestSpoiledFolderFailsTheAttempt(t *testing.T) {
	for _, c := range []struct{ name, spoil, want string }{
		{"result", "mkdir result.json; echo > result.json/file", "result.json"},
		{"question", "mkdir .ask; echo > .ask/file", ".ask"},
		{"grant", "rm .grant.json; mkdir .grant.json; echo > .grant.json/file", ".grant.json"},
		{"shim log", "rm shim.log; mkdir shim.log; echo > shim.log/file", "shim.log"},
		{"lock", "rm .lock; mkdir .lock", ".lock"},
		{"folder", `mv "$PWD" "$PWD-gone"; ln -s "$PWD-gone" "$PWD"`, "not a folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 5*time.Second)
			j, err := b.client.Submit(t.Context(), "t", nil, &lessor.SubmitOptions{MaxAttempts: 2})
			if err != nil {
				t.Fatal(err)
			}
			b.work(nil, c.spoil+"; exit 1")
			got := b.awaitJob(j.Job.ID, "failed or given back", func(j lessor.Job) bool {
				ended := j.State == lessor.Failed && j.Attempt == 2
				return ended || b.countEntries(j.ID, lessor.ReleaseCannotStart) > 0
			})
			if got.State != lessor.Failed || got.Attempt != 2 || got.Error == nil ||
				!strings.Contains(*got.Error, "did not begin") || !strings.Contains(*got.Error, c.want) {
				t.Errorf("the job is %s at attempt %d with the error %s, want failed at 2 because of %s",
					got.State, got.Attempt, valueOf(got.Error), c.want)
			}
		})
	}
}

// TestFrozenShimRaisesHung freezes a shim, so that its lease lapses while it holds the folder. The next attempt cannot
// start, which costs the job nothing. The alert hung is raised once, although the server does not see this workspace,
// and is cleared when the job has run.
func TestFrozenShimRaisesHung(t *testing.T) {
	b := newBench(t, time.Second)
	b.work(func(c *Config) { c.Concurrency = 2 }, `if [ "$LESSOR_ATTEMPT" = 1 ]; then echo $PPID > pid; sleep 60; fi`)
	id := b.submit("{}")
	shim, err := strconv.Atoi(b.awaitFile(id, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	b.awaitState(id, lessor.Running)
	if err := syscall.Kill(shim, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	thaw := sync.OnceFunc(func() { _ = syscall.Kill(shim, syscall.SIGCONT) })
	t.Cleanup(thaw)
	hung := func(open bool) (n int) {
		alerts, _, err := b.client.Alerts(t.Context(), lessor.AlertFilter{Open: open, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range alerts {
			if a.Kind == lessor.AlertHung && a.Subject == id.String() {
				n++
			}
		}
		return n
	}
	await(t, "the alert hung", func() bool { return hung(true) == 1 })
	if j, err := b.client.Job(t.Context(), id); err != nil || j.Attempt != 1 || j.Interruptions != 0 {
		t.Errorf("attempt %d after %d interruptions, error %v; want attempt 1 after 0",
			j.Attempt, j.Interruptions, err)
	}
	thaw()
	if j := b.awaitState(id, lessor.Completed); j.Attempt != 2 || j.Interruptions != 0 {
		t.Errorf("completed at attempt %d after %d interruptions, want 2 after 0", j.Attempt, j.Interruptions)
	}
	await(t, "the alert to be cleared", func() bool { return hung(true) == 0 })
	if n := hung(false); n != 1 {
		t.Errorf("hung was raised %d times, want once", n)
	}
}
