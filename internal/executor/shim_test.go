package executor

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lessor"
	"lessor/internal/sentinel"
)

func TestResultIsRecorded(t *testing.T) {
	b := newBench(t, 5*time.Second)
	b.work(nil, `cp "$LESSOR_PAYLOAD_FILE" "$LESSOR_RESULT_FILE"; echo out; echo err >&2;
		echo '{"step":2}' > "$LESSOR_CHECKPOINT_FILE"`)
	id := b.submit(`{"n":1.50}`)
	j := b.awaitState(id, lessor.Completed)
	if string(j.Result) != `{"n":1.50}` || string(j.Checkpoint) != `{"step":2}` || j.Attempt != 1 {
		t.Errorf("result %s, checkpoint %s, attempt %d; want the payload, step 2, attempt 1", j.Result, j.Checkpoint,
			j.Attempt)
	}
	if out, errs := b.read(id, "stdout.log"), b.read(id, "stderr.log"); out != "out\n" || errs != "err\n" {
		t.Errorf("stdout.log %q, stderr.log %q; want out and err", out, errs)
	}
	f := b.folder(id)
	e, err := f.Exit()
	if err != nil || e.Status != lessor.Completed || e.ExitCode != 0 || string(e.Result) != `{"n":1.50}` ||
		e.Attempt != 1 {
		t.Errorf("exit record %+v, %v; want the completed attempt 1 with its result", e, err)
	}
	if _, err := f.Sentinel(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the sentinel of an ended job: %v, want none", err)
	}
}

func TestFailureCarriesTheEndOfTheErrorOutput(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"exit code", `echo out; echo first >&2; echo 'last words' >&2; exit 7`, "exit status 7\nfirst\nlast words"},
		{"signal", `kill -9 $$`, "signal: killed"},
		{"no result", `echo '{' > "$LESSOR_RESULT_FILE"`, "the result file is not JSON"},
		{"large result", `head -c 300000 /dev/zero > "$LESSOR_RESULT_FILE"`, "the result cannot be taken: too_large"},
		{"linked result", `ln -s /etc/passwd "$LESSOR_RESULT_FILE"`, "the result cannot be taken: symlink"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 5*time.Second)
			b.work(nil, c.script)
			id := b.submit("{}")
			j := b.awaitJob(id, "failed", func(j lessor.Job) bool { return j.Error != nil })
			if !strings.HasPrefix(*j.Error, c.want) {
				t.Errorf("error %q, want one that begins with %q", *j.Error, c.want)
			}
		})
	}
}

func TestCommandThatCannotBeginFails(t *testing.T) {
	b := newBench(t, 5*time.Second)
	b.work(func(c *Config) { c.Task.Command = []string{"/nowhere/x"} }, "")
	j := b.awaitJob(b.submit("{}"), "failed", func(j lessor.Job) bool { return j.Error != nil })
	if first, _, _ := strings.Cut(*j.Error, "\n"); !strings.HasPrefix(first, "did not begin: ") ||
		!strings.Contains(first, "/nowhere/x") {
		t.Errorf("error %q, want that /nowhere/x did not begin", *j.Error)
	}
}

// openFiles prints the numbers of the files that a shell has, and that of the folder in which ls reads them.
const openFiles = `echo $(ls /proc/self/fd)`

// TestCommandSeesOnlyItsEnvironment searches for the token, and for a secret in the Runner's environment, wherever a
// command could find them.
func TestCommandSeesOnlyItsEnvironment(t *testing.T) {
	t.Setenv("SECRET", "s3cret")
	t.Setenv("LESSOR_TOKEN", testToken)
	t.Setenv("LC_ALL", "C")
	b := newBench(t, 5*time.Second)
	b.work(func(c *Config) { c.Task.Env = append(c.Task.Env, "WANTED"); c.Environ = append(c.Environ, "WANTED=w") },
		`env | sort; tr '\0' '\n' < /proc/$PPID/environ;
			tr '\0' ' ' < /proc/$PPID/cmdline; cat .grant.json shim.log; echo; `+openFiles)
	id := b.submit(`{"session_id":"abc"}`)
	b.awaitState(id, lessor.Completed)
	out := b.read(id, "stdout.log")
	for _, secret := range []string{testToken, "s3cret", "SECRET"} {
		if strings.Contains(out, secret) {
			t.Errorf("a command can find %q:\n%s", secret, out)
		}
	}
	folder := filepath.Join(b.workspace, "jobs", id.String())
	for _, want := range []string{
		"LESSOR_JOB_ID=" + id.String(), "LESSOR_ATTEMPT=1", "LESSOR_LEASE_ID=", "LESSOR_WORKER=", "LESSOR_FENCE=1",
		"LESSOR_SESSION_ID=abc", "LC_ALL=C",
		"WANTED=w", "PATH=",
		"LESSOR_PAYLOAD_FILE=" + folder + "/payload.json", "LESSOR_RESULT_FILE=" + folder + "/result.json",
		"LESSOR_CHECKPOINT_FILE=" + folder + "/checkpoint.json", "PWD=" + folder,
	} {
		if !strings.Contains("\n"+out, "\n"+want) {
			t.Errorf("the environment lacks %s:\n%s", want, out)
		}
	}
	want, err := exec.Command("sh", "-c", openFiles).Output() // what every program that this test starts inherits
	if err != nil || !strings.HasSuffix(out, "\n"+string(want)) {
		t.Errorf("a command has other files than %q (%v):\n%s", want, err, out)
	}
}

// TestCancelReachesTheWholeGroup cancels a command whose child ignores SIGTERM and holds a pipe open until it ends.
func TestCancelReachesTheWholeGroup(t *testing.T) {
	b := newBench(t, 5*time.Second)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	b.work(nil, `trap 'echo asked; exit 3' TERM; (trap '' TERM; exec > `+pipe+`; while :; do sleep 1; done) & wait`)
	id := b.submit("{}")
	held, err := os.Open(pipe) // returns when the child has opened it
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := b.client.Cancel(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	_ = held.SetReadDeadline(time.Now().Add(60 * time.Second))
	if _, err := io.Copy(io.Discard, held); err != nil {
		t.Fatalf("the child lives a minute after the cancel: %v", err)
	}
	b.awaitState(id, lessor.Cancelled)
	if out := b.read(id, "stdout.log"); out != "asked\n" {
		t.Errorf("the command printed %q, want asked: SIGTERM comes first", out)
	}
	e, err := b.folder(id).Exit()
	if err != nil || e.Status != lessor.Cancelled || e.ExitCode != 3 {
		t.Errorf("exit record %+v, %v; want cancelled with exit code 3", e, err)
	}
}

func TestTimeoutFailsTheJob(t *testing.T) {
	b := newBench(t, 5*time.Second)
	b.work(func(c *Config) { c.Task.Timeout = 200 * time.Millisecond }, `sleep 30`)
	j := b.awaitJob(b.submit("{}"), "failed", func(j lessor.Job) bool { return j.Error != nil })
	if !strings.HasPrefix(*j.Error, "ran longer than 0.2 s: signal: terminated") {
		t.Errorf("error %q, want that it ran longer than 0.2 s", *j.Error)
	}
}

// TestCommandEndsAfterItsMaximumRuntime uses a ttl so long that no heartbeat tells the shim in time.
func TestCommandEndsAfterItsMaximumRuntime(t *testing.T) {
	b := newBench(t, 10*time.Minute)
	b.work(nil, `echo last words >&2; sleep 300`)
	j, err := b.client.Submit(t.Context(), "t", nil, &lessor.SubmitOptions{MaxRuntime: time.Second, MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if j := b.awaitState(j.Job.ID, lessor.Failed); j.Error == nil || *j.Error != "max_runtime_exceeded\nlast words" {
		t.Errorf("error %q, want max_runtime_exceeded with the last words", valueOf(j.Error))
	}
}

// TestRemovedFolderFailsTheAttempt removes the folder of a command. The attempt fails long before its lease expires,
// although the first reports of its end fail. The command repeats rm, which fails if the shim writes its pulse
// at the same time.
func TestRemovedFolderFailsTheAttempt(t *testing.T) {
	b := newBench(t, 10*time.Minute)
	var reports atomic.Int32
	b.server = b.proxy(func(w http.ResponseWriter, r *http.Request) bool {
		// The client repeats a call that gets 503.
		early := strings.HasSuffix(r.URL.Path, "/complete") && reports.Add(1) <= 3
		if early {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return early
	})
	b.work(nil, `echo last words >&2; until rm -rf "$PWD" 2> /dev/null; do :; done; sleep 300`)
	// A second attempt would outlive the test: its shim waits for a server for ten minutes.
	once, err := b.client.Submit(t.Context(), "t", json.RawMessage("{}"), &lessor.SubmitOptions{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	j := b.awaitState(once.Job.ID, lessor.Failed)
	if *j.Error != "the folder of the job was removed\nlast words" {
		t.Errorf("error %q, want that the folder was removed, with the last words", *j.Error)
	}
	if n := reports.Load(); n != 4 {
		t.Errorf("the end was reported %d times, want 4", n)
	}
}

// TestForcedCancelLeavesNoExitRecord: a forced cancel ends the lease of a running command. The shim ends the command
// and reports nothing.
func TestForcedCancelLeavesNoExitRecord(t *testing.T) {
	b := newBench(t, 3*time.Second)
	b.work(nil, `echo $$ > begun; sleep 30`)
	id := b.submit("{}")
	b.awaitFile(id, "begun")
	if _, err := b.client.Cancel(t.Context(), id, true); err != nil {
		t.Fatal(err)
	}
	f := b.folder(id)
	await(t, "the shim to end", func() bool { held, err := f.Locked(); return err == nil && !held })
	if _, err := f.Exit(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("exit record of a lease that was over: %v, want none", err)
	}
	if _, err := f.Sentinel(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sentinel of a lease that was over: %v, want none", err)
	}
}

// TestTerminatedShimGivesTheLeaseBack sends SIGTERM to the shim, as a machine does that stops.
func TestTerminatedShimGivesTheLeaseBack(t *testing.T) {
	b := newBench(t, 10*time.Second)
	stop := b.work(nil, `echo $PPID > shim; echo '{"at":1}' > "$LESSOR_CHECKPOINT_FILE"; sleep 30`)
	id := b.submit("{}")
	shim, err := strconv.Atoi(b.awaitFile(id, "shim"))
	if err != nil {
		t.Fatal(err)
	}
	stop()
	b.awaitFile(id, "checkpoint.json")
	if err := syscall.Kill(shim, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	j := b.awaitState(id, lessor.Queued)
	if j.Interruptions != 1 || string(j.Checkpoint) != `{"at":1}` {
		t.Errorf("%d interruptions, checkpoint %s; want 1 and what the command wrote", j.Interruptions, j.Checkpoint)
	}
	b.work(nil, `cp "$LESSOR_CHECKPOINT_FILE" "$LESSOR_RESULT_FILE"`)
	if j := b.awaitState(id, lessor.Completed); string(j.Result) != `{"at":1}` {
		t.Errorf("the next attempt got the checkpoint %s, want the one before", j.Result)
	}
}

// TestKilledShimIsRetried kills the shim, with or without its command. The lease expires, and another attempt runs.
func TestKilledShimIsRetried(t *testing.T) {
	for _, whole := range []bool{false, true} {
		t.Run("group="+strconv.FormatBool(whole), func(t *testing.T) {
			b := newBench(t, 700*time.Millisecond)
			b.work(nil, `[ $LESSOR_ATTEMPT = 2 ] && exit 0; echo $PPID $$ > ids; exec sleep 3`)
			id := b.submit("{}")
			ids := strings.Fields(b.awaitFile(id, "ids"))
			shim, _ := strconv.Atoi(ids[0])
			command, _ := strconv.Atoi(ids[1])
			if shim < 2 || command < 2 {
				t.Fatalf("the command wrote the process ids %q, want two", ids)
			}
			if whole {
				_ = syscall.Kill(-command, syscall.SIGKILL)
			}
			if err := syscall.Kill(shim, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if j := b.awaitState(id, lessor.Completed); j.Attempt != 2 {
				t.Errorf("completed by attempt %d, want 2", j.Attempt)
			}
		})
	}
}

func TestBeatsAndProgressReachServerAndSentinel(t *testing.T) {
	b := newBench(t, 5*time.Second)
	never := func(c *Config) { c.Task.PulseEvery = time.Hour } // a new status does not wait for the next pulse
	b.work(never, `STATUS=waiting "$LESSOR" beat && "$LESSOR" progress 0.4 'frame 4' && echo x > said;
		while [ ! -e go ]; do sleep 0.05; done`)
	id := b.submit("{}")
	b.awaitFile(id, "said")
	j := b.awaitJob(id, "at 40 %", func(j lessor.Job) bool { return j.Progress != nil })
	if *j.Progress != 0.4 || j.Message == nil || *j.Message != "frame 4" {
		t.Errorf("progress %v, message %q; want 0.4 and frame 4", *j.Progress, valueOf(j.Message))
	}
	f := b.folder(id)
	var s sentinel.Sentinel
	await(t, "the sentinel to say waiting", func() bool {
		var err error
		s, err = f.Sentinel()
		return err == nil && s.Status == sentinel.Waiting
	})
	if s.AgentEngine != "command" || s.Fence == 0 || s.WorkspacePath != f.Path() || s.SessionID != id.String() ||
		s.LastProgress.IsZero() {
		t.Errorf("sentinel %+v, want engine, fence, path, session and time of progress", s)
	}
	if err := os.WriteFile(b.file(id, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.awaitState(id, lessor.Completed)
}
