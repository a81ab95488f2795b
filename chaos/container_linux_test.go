package chaos

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lessor"
	"lessor/internal/pgtest"
)

// stoppedScript saves a checkpoint and runs until it is stopped. One of three kinds then saves another one and exits
// with 0, one dies of the signal, and one must be killed. An attempt that finds a checkpoint returns it.
const stoppedScript = `save() { echo "{\"step\":$1}" > new && mv new "$LESSOR_CHECKPOINT_FILE"; }
[ -e "$LESSOR_CHECKPOINT_FILE" ] && exec cp "$LESSOR_CHECKPOINT_FILE" "$LESSOR_RESULT_FILE"
case $(cat "$LESSOR_PAYLOAD_FILE") in
*0*) trap 'save 8; exit 0' TERM ;;
*2*) trap '' TERM ;;
esac
save 7
while :; do sleep 1 & wait; done`

// TestProcessOneStopsItsCommands sends SIGTERM to a `lessor work` that is process 1 of its namespace, as a container
// platform does, under 50 commands. All end inside the grace, no job loses an attempt, and another worker in another
// place continues each from its last checkpoint.
func TestProcessOneStopsItsCommands(t *testing.T) {
	settings := []string{"LESSOR_CAPACITY_BUSY=0", "LESSOR_TENANTS_DEFAULT_CAP=100"}
	t.Run("sqlite", func(t *testing.T) { stopProcessOne(t, start(t, settings...)) })
	t.Run("postgres", func(t *testing.T) {
		store := "LESSOR_STORE=" + database(t, pgtest.Options{}).URL("postgres")
		stopProcessOne(t, start(t, append(settings, store)...))
	})
}

func stopProcessOne(t *testing.T, s *server) {
	const jobs, grace = 50, 10 * time.Second
	api := s.client()
	var ids []lessor.JobID
	for i := range jobs {
		j, err := api.Submit(t.Context(), "long", map[string]int{"kind": i % 3}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, j.Job.ID)
	}
	wrap, onStop := inNamespace(0), "auto"
	if _, err := namespaces(); err != nil {
		t.Logf("no process id namespaces here (%v): lessor work runs with --on-stop stop", err)
		wrap, onStop = nil, "stop"
	}
	work := func(name string) *worker {
		w := &worker{t: t, wrap: wrap, env: []string{"LESSOR_EXECUTOR_KILL_GRACE=2s"}, args: []string{
			"work", "--type", "long", "--server", "http://" + s.addr, "--workspace", t.TempDir(), "--worker", name,
			"--concurrency", strconv.Itoa(jobs + 5), "--stop-grace", grace.String(), "--on-stop", onStop,
			"--shell", "--", stoppedScript,
		}}
		w.start()
		t.Cleanup(w.kill)
		return w
	}
	first := work("first")
	for _, id := range ids {
		await(t, api, id, "at its checkpoint", func(j lessor.Job) bool { return string(j.Checkpoint) == `{"step":7}` })
	}
	signalled := time.Now()
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	killed := time.AfterFunc(grace, func() { _ = first.cmd.Process.Kill() })
	err := first.cmd.Wait()
	if took := time.Since(signalled); err != nil || !killed.Stop() {
		t.Errorf("ended after %s with %v, want 0 within %s", took, err, grace)
	} else {
		t.Logf("%d commands were stopped in %s", jobs, took)
	}
	for _, id := range ids {
		j, err := api.Job(t.Context(), id)
		if err != nil || j.State != lessor.Queued || j.Attempt != 0 {
			t.Errorf("job %s is %s in attempt %d after the stop, want it queued and no attempt lost (%v)",
				id, j.State, j.Attempt, err)
		}
	}
	second := work("second")
	for i, id := range ids {
		j := await(t, api, id, "completed", func(j lessor.Job) bool { return j.State == lessor.Completed })
		want := `{"step":7}`
		if i%3 == 0 {
			want = `{"step":8}`
		}
		if string(j.Result) != want || j.Attempt != 1 {
			t.Errorf("job %s continued from %s in attempt %d, want %s and 1", id, j.Result, j.Attempt, want)
		}
	}
	if err := second.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := second.cmd.Wait(); err != nil {
		t.Errorf("a stop without commands: %v", err)
	}
	first.cmd, second.cmd = nil, nil
}

// TestProcessOneReapsOrphans has a command kill its shim: process 1 inherits the command, which ends, and removes it.
func TestProcessOneReapsOrphans(t *testing.T) {
	if _, err := namespaces(); err != nil {
		t.Logf("no process id namespaces here (%v): nothing makes lessor work process 1", err)
		return
	}
	s := start(t, "LESSOR_CAPACITY_BUSY=0")
	workspace := t.TempDir()
	w := &worker{t: t, wrap: inNamespace(0), args: []string{
		"work", "--type", "long", "--server", "http://" + s.addr, "--workspace", workspace, "--worker", "one",
		"--ttl", "1h", "--shell", "--", "kill -9 $PPID; echo > killed",
	}}
	w.start()
	t.Cleanup(w.kill)
	j, err := s.client().Submit(t.Context(), "long", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "the shim to be killed", func() bool {
		_, err := os.Stat(filepath.Join(workspace, "jobs", j.Job.ID.String(), "killed"))
		return err == nil
	})
	within(t, "process 1 to have no children, dead or alive",
		func() bool { return len(childrenOf(w.cmd.Process.Pid)) == 0 })
}

func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// childrenOf returns the processes whose parent is parent, dead ones too.
func childrenOf(parent int) (names []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, name := range all {
		status, _ := os.ReadFile(name) // it may have ended
		if strings.Contains(string(status), "\nPPid:\t"+strconv.Itoa(parent)+"\n") {
			names = append(names, name)
		}
	}
	return names
}
