package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lessor"
)

// TestHeldFolderIsAskedToStop starts an attempt while an earlier one holds the folder. The Runner asks the earlier one
// to stop, and keeps the new lease alive until it does, for longer than the ttl.
func TestHeldFolderIsAskedToStop(t *testing.T) {
	b := newBench(t, 3*time.Second)
	id := b.submit("{}")
	f := b.folder(id)
	held, err := f.Lock()
	if err != nil || held == nil {
		t.Fatalf("lock: %v, %v", held, err)
	}
	b.work(func(c *Config) { c.Task.KillGrace = 10 * time.Second }, "echo ran")
	j := b.awaitJob(id, "leased", func(j lessor.Job) bool { return j.LeaseID != nil })
	await(t, "the request to stop", func() bool { return b.read(id, ".stop") != "" })
	if asked, err := f.AskedToStop(1); err != nil || !asked {
		t.Errorf("the earlier attempt is asked to stop: %t, %v; want true", asked, err)
	}
	time.Sleep(6 * time.Second) // twice the ttl: without heartbeats the lease would be over
	if out := b.read(id, "stdout.log"); out != "" {
		t.Fatalf("two attempts ran at once: %q", out)
	}
	_ = held.Close()
	done := b.awaitState(id, lessor.Completed)
	if done.Attempt != j.Attempt || done.Attempt != 1 {
		t.Errorf("granted as attempt %d and completed as attempt %d, want 1 for both", j.Attempt, done.Attempt)
	}
}

// TestLeaseIsReleasedIfTheFolderStaysHeld: the earlier attempt does not stop.
func TestLeaseIsReleasedIfTheFolderStaysHeld(t *testing.T) {
	b := newBench(t, 5*time.Second)
	id := b.submit("{}")
	held, err := b.folder(id).Lock()
	if err != nil || held == nil {
		t.Fatalf("lock: %v, %v", held, err)
	}
	defer held.Close()
	b.work(func(c *Config) { c.Task.KillGrace = 50 * time.Millisecond }, "echo ran")
	j := b.awaitJob(id, "given back", func(j lessor.Job) bool {
		return j.State == lessor.Queued && b.countEntries(id, lessor.ReleaseFolderHeld) > 0
	})
	if j.Attempt != 0 || j.Interruptions != 0 {
		t.Errorf("attempt %d after %d interruptions, want 0 after 0", j.Attempt, j.Interruptions)
	}
	why, err := b.client.Why(t.Context(), id)
	if err != nil || len(why.Reasons) == 0 || why.Reasons[0].Code != "not_due" {
		t.Errorf("the job waits because of %+v (%v), want not_due", why.Reasons, err)
	}
}

// TestSupersededShimWritesNoExitRecord: a newer attempt asks a shim to stop. A request for earlier attempts does not
// end it.
func TestSupersededShimWritesNoExitRecord(t *testing.T) {
	b := newBench(t, 30*time.Second)
	stop := b.work(nil, `echo x > begun; sleep 30`)
	id := b.submit("{}")
	b.awaitFile(id, "begun")
	stop()
	f := b.folder(id)
	s, err := f.Sentinel()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.AskToStop(s.Fence); err != nil { // attempts with a lower fence are to stop: not this one
		t.Fatal(err)
	}
	time.Sleep(3 * checkInterval)
	if held, err := f.Locked(); err != nil || !held {
		t.Fatalf("a request for earlier attempts ended this one: held %t, %v", held, err)
	}
	if err := f.AskToStop(s.Fence + 1); err != nil {
		t.Fatal(err)
	}
	await(t, "the shim to end", func() bool { held, err := f.Locked(); return err == nil && !held })
	if _, err := f.Exit(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("exit record: %v, want none", err)
	}
}

// TestShimOfARemovedFolderEnds removes the folder of a command that runs.
func TestShimOfARemovedFolderEnds(t *testing.T) {
	b := newBench(t, 30*time.Second)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	b.work(nil, `exec > `+pipe+`; sleep 30`)
	id := b.submit("{}")
	held, err := os.Open(pipe) // returns when the command has opened it
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	await(t, "the folder to be removed, also while its shim writes into it", func() bool {
		return os.RemoveAll(filepath.Join(b.workspace, "jobs", id.String())) == nil
	})
	_ = held.SetReadDeadline(time.Now().Add(60 * time.Second))
	if _, err := io.Copy(io.Discard, held); err != nil {
		t.Fatalf("the command lives a minute after its folder: %v", err)
	}
}

// TestNextRunnerCountsRunningCommands stops a Runner whose command continues, and starts another. Each may run one
// command at a time.
func TestNextRunnerCountsRunningCommands(t *testing.T) {
	b := newBench(t, 5*time.Second)
	script := `echo x > begun; while [ ! -e go ]; do sleep 0.02; done`
	stop := b.work(nil, script)
	first := b.submit("{}")
	b.awaitFile(first, "begun")
	stop()
	second := b.submit("{}")
	b.work(nil, script)
	time.Sleep(500 * time.Millisecond) // long enough for a Runner that does not count the first command
	if j, err := b.client.Job(t.Context(), second); err != nil || j.State != lessor.Queued {
		t.Fatalf("the second job is %s (%v) while the first runs, want queued", j.State, err)
	}
	if err := os.WriteFile(b.file(first, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if j := b.awaitState(first, lessor.Completed); j.Attempt != 1 {
		t.Errorf("the first job took %d attempts, want 1", j.Attempt)
	}
	b.awaitFile(second, "begun")
	if err := os.WriteFile(b.file(second, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.awaitState(second, lessor.Completed)
}

// TestGrantedJobIsStartedByTheNextRunner: the Runner before was killed between the grant and the start of the shim.
func TestGrantedJobIsStartedByTheNextRunner(t *testing.T) {
	b := newBench(t, time.Minute)
	id := b.submit(`{"n":3}`)
	r, err := NewRunner(Config{
		Server: b.server, Workspace: b.workspace, Worker: "test", Types: []string{"t"},
		Shim: []string{"x"}, Task: Task{Command: []string{"x"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	worker := r.Worker()
	_ = r.Close()
	if _, denial, err := b.client.Request(t.Context(),
		lessor.LeaseRequest{WorkerID: &worker, Types: []string{"t"}}); err != nil || denial != nil {
		t.Fatalf("request: %v, %v", denial, err)
	}
	b.work(nil, `cp "$LESSOR_PAYLOAD_FILE" "$LESSOR_RESULT_FILE"`)
	if j := b.awaitState(id, lessor.Completed); string(j.Result) != `{"n":3}` || j.Attempt != 1 {
		t.Errorf("result %s, attempt %d; want n 3, attempt 1", j.Result, j.Attempt)
	}
}

// TestGrantedJobOfAFrozenShimIsGivenBack: a shim hangs, its lease expires, and the Runner is killed when it has got
// the job's next lease. The next Runner finds the frozen shim and gives that lease back before it expires.
func TestGrantedJobOfAFrozenShimIsGivenBack(t *testing.T) {
	b := newBench(t, 2*time.Second)
	script := `if [ "$LESSOR_ATTEMPT" = 1 ]; then echo $PPID > pid; sleep 60; fi`
	stop := b.work(nil, script)
	id := b.submit("{}")
	shim, err := strconv.Atoi(b.awaitFile(id, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	running := b.awaitState(id, lessor.Running)
	stop()
	if err := syscall.Kill(shim, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	thaw := sync.OnceFunc(func() { _ = syscall.Kill(shim, syscall.SIGCONT) })
	t.Cleanup(thaw)
	b.awaitJob(id, "without its lease", func(j lessor.Job) bool { return j.LeaseID == nil })
	worker := b.runner(nil, script).Worker()
	var second lessor.LeaseID
	await(t, "the second lease", func() bool {
		grants, _, err := b.client.Request(t.Context(), lessor.LeaseRequest{
			WorkerID: &worker, Types: []string{"t"}, TTLMS: new(int64(3000)),
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range grants {
			second = g.Lease.ID
		}
		return len(grants) > 0
	})
	b.work(func(c *Config) { c.Concurrency = 2 }, script)
	j := b.awaitJob(id, "without its second lease", func(j lessor.Job) bool {
		return j.LeaseID == nil || *j.LeaseID != second
	})
	if n := b.countEntries(id, lessor.ReleaseFolderHeld); n == 0 || j.Attempt != running.Attempt {
		t.Errorf("the lease was given back %d times, and the job is at attempt %d; want once or more, at attempt %d",
			n, j.Attempt, running.Attempt)
	}
	thaw()
	if j := b.awaitState(id, lessor.Completed); j.Attempt != 2 {
		t.Errorf("completed at attempt %d, want 2", j.Attempt)
	}
}

// TestExitRecordOfAKilledShimIsReported kills a shim that has written its exit record and reported nothing. Its Runner
// sees it die and reports the record. No server watches this workspace.
func TestExitRecordOfAKilledShimIsReported(t *testing.T) {
	b := newBench(t, time.Minute)
	id := b.submit("{}")
	b.work(func(c *Config) { c.Shim[1] = "doomed" }, "echo ran")
	b.wantEndOnce(id)
}

// TestExitRecordOfAKilledShimIsReportedByTheNextRunner: the Runner of the shim was killed too.
func TestExitRecordOfAKilledShimIsReportedByTheNextRunner(t *testing.T) {
	b := newBench(t, time.Minute)
	id := b.submit("{}")
	r, err := NewRunner(Config{
		Server: b.server, Workspace: b.workspace, Worker: "test", Types: []string{"t"},
		Shim: []string{"x"}, Task: Task{Command: []string{"x"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	worker := r.Worker()
	_ = r.Close()
	grants, denial, err := b.client.Request(t.Context(), lessor.LeaseRequest{WorkerID: &worker, Types: []string{"t"}})
	if err != nil || denial != nil {
		t.Fatalf("request: %v, %v", denial, err)
	}
	f := b.folder(id)
	if err := errors.Join(writeOrder(f, order{Grant: grants[0]}), writeEnd(f, grants[0])); err != nil {
		t.Fatal(err)
	}
	b.work(nil, "echo ran")
	b.wantEndOnce(id)
}

// TestExitRecordOfAnAdoptedShimIsReported kills the shim of a command that has ended, while the shim cannot reach a
// server. The Runner was restarted while the command ran, so it does not see the shim die.
func TestExitRecordOfAnAdoptedShimIsReported(t *testing.T) {
	b := newBench(t, 5*time.Minute)
	cut := b.cuttable()
	script := `echo $PPID > shim; while [ ! -e go ]; do sleep 0.02; done; echo '{"n":7}' > "$LESSOR_RESULT_FILE"`
	stop := b.work(nil, script)
	id := b.submit("{}")
	shim, err := strconv.Atoi(b.awaitFile(id, "shim"))
	if err != nil {
		t.Fatal(err)
	}
	stop()
	var log logBuffer
	b.work(log.to, script)
	await(t, "the command to be found", func() bool { return log.count("still running") == 1 })
	cut.Store(true)
	if err := os.WriteFile(b.file(id, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, "the exit record", func() bool { _, err := b.folder(id).Exit(); return err == nil })
	if err := syscall.Kill(shim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cut.Store(false)
	b.wantEndOnce(id)
}

// wantEndOnce fails the test unless a job is completed with the result of writeEnd, and no command ran for it.
func (b *bench) wantEndOnce(id lessor.JobID) {
	b.t.Helper()
	if j := b.awaitState(id, lessor.Completed); string(j.Result) != `{"n":7}` || j.Attempt != 1 {
		b.t.Errorf("result %s, attempt %d; want n 7, attempt 1", j.Result, j.Attempt)
	}
	if out := b.read(id, stdoutName); out != "" {
		b.t.Errorf("a command ran and printed %q, want none", out)
	}
	await(b.t, "the sentinel to be removed", func() bool { return b.read(id, ".sentinel.json") == "" })
}

// TestLeaseLivesOnProgressAlone runs a command that is silent in its first attempt and makes progress in its second,
// for twice the ttl. The shell writes the file that `lessor beat` would write, because starting a program takes too
// long on a busy machine.
func TestLeaseLivesOnProgressAlone(t *testing.T) {
	for name, move := range map[string]string{
		"output": "echo .",
		"beat":   `echo "{\"nonce\":\"$i\"}" > new && mv new .beat`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2*time.Second)
			b.work(func(c *Config) { c.Task.ExtendOn = lessor.ExtendOnProgress },
				`[ $LESSOR_ATTEMPT = 1 ] && exec sleep 30;
					for i in $(seq 40); do `+move+`; sleep 0.1; done`)
			id := b.submit("{}")
			if j := b.awaitState(id, lessor.Completed); j.Attempt != 2 {
				t.Errorf("completed by attempt %d, want 2: only the silent attempt loses its lease", j.Attempt)
			}
			expired := 0
			for e, err := range b.client.AllEvents(t.Context(), id) {
				if err != nil {
					t.Fatal(err)
				}
				if e.To == lessor.Expired {
					expired++
				}
			}
			if expired != 1 {
				t.Errorf("%d leases expired, want only that of the silent attempt", expired)
			}
		})
	}
}

// TestDrainWaitsForCommandsIfAsked stops a Runner that has Wait set, while its command runs.
func TestDrainWaitsForCommandsIfAsked(t *testing.T) {
	b := newBench(t, 5*time.Second)
	stop := b.work(func(c *Config) { c.Wait = true }, `echo x > begun; while [ ! -e go ]; do sleep 0.02; done`)
	id := b.submit("{}")
	b.awaitFile(id, "begun")
	ended := make(chan struct{})
	go func() {
		stop()
		close(ended)
	}()
	select {
	case <-ended:
		t.Fatal("the Runner ended before its command")
	case <-time.After(300 * time.Millisecond):
	}
	if err := os.WriteFile(b.file(id, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-ended
	b.awaitState(id, lessor.Completed)
}

func TestRunnerReturnsTheRefusalOfItsToken(t *testing.T) {
	b := newBench(t, 5*time.Second)
	r, err := NewRunner(Config{
		Server: b.server, Token: "wrong-token", Workspace: b.workspace, Worker: "test",
		Types: []string{"t"}, Shim: []string{"x"}, Task: Task{Command: []string{"x"}},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Run(t.Context()); lessor.CodeOf(err) != lessor.CodeUnauthenticated {
		t.Errorf("run with a wrong token: %v, want unauthenticated", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ctx); err != nil {
		t.Errorf("run with a cancelled context: %v, want nil", err)
	}
}

// TestFullDiskIsAWarning fills the workspace's file system while a command runs, and empties it again.
func TestFullDiskIsAWarning(t *testing.T) {
	b := newBench(t, 3*time.Second)
	b.mountWorkspace("256k")
	stop := b.work(nil, `echo x > begun; while [ ! -e go ]; do echo line; sleep 0.02; done;
		echo '{"n":1}' > "$LESSOR_RESULT_FILE"`)
	id := b.submit("{}")
	b.awaitFile(id, "begun")
	full := b.workspace + "/full"
	_ = os.WriteFile(full, make([]byte, 1<<20), 0o600) // writes what fits
	await(t, "the pulse to stop", func() bool { return b.pulseStopped(id) })
	f := b.folder(id)
	before, err := f.Sentinel()
	if err != nil {
		t.Fatalf("read the sentinel on a full disk: %v", err)
	}
	if j, err := b.client.Job(t.Context(), id); err != nil || j.State != lessor.Running {
		t.Fatalf("the job is %s on a full disk, %v; want running", j.State, err)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	await(t, "the pulse to come back", func() bool { s, err := f.Sentinel(); return err == nil && s.Seq > before.Seq })
	if err := os.WriteFile(b.file(id, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if j := b.awaitState(id, lessor.Completed); string(j.Result) != `{"n":1}` || j.Attempt != 1 {
		t.Errorf("result %s, attempt %d; want n 1, attempt 1", j.Result, j.Attempt)
	}
	stop()
}

// pulseStopped reports whether the shim has stopped writing its sentinel. On a full disk it cannot write a warning
// into its log either.
func (b *bench) pulseStopped(id lessor.JobID) bool {
	f := b.folder(id)
	s, err := f.Sentinel()
	if err != nil {
		return false
	}
	time.Sleep(200 * time.Millisecond) // four pulses
	again, err := f.Sentinel()
	return err == nil && again.Seq == s.Seq
}

func TestEndOfTheOutputIsKept(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seen := 0
	o := &output{file: file, limit: 200, seen: func() { seen++ }, warn: func(err error) { t.Errorf("warned: %v", err) }}
	all := ""
	for i, s := range []string{
		strings.Repeat("1", 100), strings.Repeat("2", 100), "three", strings.Repeat("4", 90), "five",
		strings.Repeat("é", lessor.MaxErrorText) + "\xff\x00 end\n",
	} {
		if n, err := o.Write([]byte(s)); n != len(s) || err != nil {
			t.Errorf("write %d bytes: %d, %v", len(s), n, err)
		}
		all += s
		raw, err := os.ReadFile(file.Name())
		kept, cut := strings.CutPrefix(string(raw), cutMark)
		if err != nil || len(raw) > 200 || cut != (i > 1) || !strings.HasSuffix(all, kept) || len(kept) < 50 {
			t.Errorf("after %d writes the file has %q, %v; want the end of the output, at most 200 bytes", i+1, raw,
				err)
		}
	}
	last := o.last(100)
	if !strings.HasSuffix(last, "éé end") || len(last) > 100 || strings.ContainsRune(last, 0xfffd) || seen != 6 {
		t.Errorf("the end is %q, seen %d times; want at most 100 bytes of whole characters, seen 6 times", last, seen)
	}
}

func TestOutputOnAFullDiskIsAWarning(t *testing.T) {
	file, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	warned := 0
	o := &output{file: file, limit: 100, seen: func() {}, warn: func(error) { warned++ }}
	for range 3 {
		fmt.Fprint(o, "x")
	}
	if warned != 1 || o.last(10) != "xxx" {
		t.Errorf("warned %d times, the end is %q; want once, and xxx", warned, o.last(10))
	}
}

func TestLimitsAreSetBeforeTheCommand(t *testing.T) {
	b := newBench(t, 5*time.Second)
	b.work(func(c *Config) { c.Task.Nice, c.Task.Memory = 5, 1<<30 }, `echo "$(ulimit -v) $(nice)" > limits`)
	id := b.submit("{}")
	b.awaitState(id, lessor.Completed)
	own, err := exec.Command("nice").Output() // the test itself may run under nice
	if err != nil {
		t.Fatal(err)
	}
	base, err := strconv.Atoi(strings.TrimSpace(string(own)))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.awaitFile(id, "limits"), fmt.Sprintf("1048576 %d", min(base+5, 19)); got != want {
		t.Errorf("limits are %q, want %q: 1 GiB, and a niceness that is higher by 5", got, want)
	}
}
