package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lessor"
)

// strangers is the number of processes that take the first process ids of a namespace.
const strangers = 300

// inNamespace makes a command the first process of its own process id namespace, with its own /proc. The next ids
// belong to the given number of unrelated processes. All end with the first.
func inNamespace(others int) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		script := `mount -t proc none /proc && i=0 &&
while [ $i -lt ` + strconv.Itoa(others) + ` ]; do sleep 1000 & i=$((i + 1)); done && exec "$@"`
		cmd.Args = append([]string{"sh", "-c", script, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS}
	}
}

// namespaces returns inNamespace, or an error if the kernel does not allow namespaces.
func namespaces() (wrap func(others int) func(*exec.Cmd), err error) {
	probe := exec.Command("/bin/true")
	inNamespace(0)(probe)
	if err := probe.Run(); err != nil {
		return nil, err
	}
	return inNamespace, nil
}

// TestReusedProcessIDsHaveNoEffect reuses every process id of a dead command, its shim and its `lessor work`: in the
// namespace of the restarted server for unrelated processes, in a third one for a live command. The server judges both
// commands by their sentinels.
func TestReusedProcessIDsHaveNoEffect(t *testing.T) {
	wrap, err := namespaces()
	if err != nil {
		t.Logf("no process id namespaces here (%v): the test runs without them and reuses few ids", err)
		wrap = func(int) func(*exec.Cmd) { return nil }
	}
	workspace := t.TempDir()
	s := start(t, append(watching(workspace), "LESSOR_LEASE_TTL=1h", "LESSOR_CAPACITY_BUSY=0",
		"LESSOR_RECOVERY_WATCH=3s", "LESSOR_JOBS_BACKOFF_FIRST=10ms")...)
	api := s.client()
	work := func(kind string) (*worker, lessor.JobID) {
		// The first attempt runs until the file go exists or its namespace ends.
		script := `echo $$ $PPID > who.new; mv who.new ` + filepath.Join(workspace, kind) + `
while [ "$LESSOR_ATTEMPT" = 1 ] && [ ! -e go ]; do sleep 0.05; done`
		w := &worker{t: t, wrap: wrap(0), env: []string{"LESSOR_SENTINEL_INTERVAL=100ms"}, args: []string{
			"work", "--type", kind, "--server", "http://" + s.addr, "--workspace", workspace, "--worker", kind,
			"--shell", "--", script,
		}}
		w.start()
		t.Cleanup(w.kill)
		j, err := api.Submit(t.Context(), kind, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return w, j.Job.ID
	}
	dies, dead := work("dies")
	command, shim := processIDs(t, filepath.Join(workspace, "dies"))
	lives, alive := work("lives")
	_, twin := processIDs(t, filepath.Join(workspace, "lives"))
	t.Cleanup(func() { endShims(t, workspace) })
	t.Logf("the dead command was %d under shim %d, the live one has shim %d", command, shim, twin)
	if err == nil && max(command, shim) >= strangers {
		t.Errorf("processes %d and %d are not among the %d whose ids are reused", command, shim, strangers)
	}
	dies.kill() // which ends its namespace
	if err != nil {
		killAll(t, shim)
		killAll(t, -command)
	}
	s.kill()
	time.Sleep(1500 * time.Millisecond) // the last pulse of the dead command is then too old to count as resumed
	s.wrap = wrap(strangers)
	s.start()
	await(t, api, alive, "reattached", func(j lessor.Job) bool { return j.Reattached && j.State == lessor.Running })
	j := await(t, api, dead, "found dead",
		func(j lessor.Job) bool { return j.State != lessor.Leased && j.State != lessor.Running })
	if j.Error == nil || *j.Error != "Heartbeat not resumed after restart" {
		t.Errorf("the dead one ended with %v", j.Error)
	}
	dies.start()
	completed := func(j lessor.Job) bool { return j.State == lessor.Completed }
	if j := await(t, api, dead, "completed", completed); j.Attempt != 2 {
		t.Errorf("the dead one is completed in attempt %d", j.Attempt)
	}
	if err := os.WriteFile(filepath.Join(workspace, "jobs", alive.String(), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if j := await(t, api, alive, "completed", completed); j.Attempt != 1 {
		t.Errorf("the live one is completed in attempt %d", j.Attempt)
	}
	failed, err := s.admin().FailedJobs(t.Context())
	if err != nil || len(failed.FailedJobs) != 1 || failed.FailedJobs[0].JobID != dead ||
		!strings.Contains(failed.FailedJobs[0].Reason, "not resumed") {
		t.Errorf("found dead: %+v, %v", failed, err)
	}
	lives.kill()
}
