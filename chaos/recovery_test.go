package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lessor"
	"lessor/client"
)

// watching returns settings with which a server's monitor watches a workspace: the documented times divided by about a
// hundred, but long enough that a command on a busy machine does not seem dead.
func watching(workspace string) []string {
	return []string{
		"LESSOR_WORKSPACE=" + workspace, "LESSOR_SENTINEL_INTERVAL=100ms", "LESSOR_SENTINEL_SCAN=200ms",
		"LESSOR_SENTINEL_STALE_AFTER=3s", "LESSOR_SENTINEL_DEAD_AFTER=6s", "LESSOR_RECOVERY_WATCH=20s",
		"LESSOR_RECOVERY_POLL=100ms", "LESSOR_RECOVERY_RESUMED_WITHIN=1s", "LESSOR_RECOVERY_CLEANUP_DELAY=200ms",
	}
}

// admin returns a client with the server's admin token.
func (s *server) admin() *client.Client {
	s.t.Helper()
	secret, err := os.ReadFile(filepath.Join(s.data, "admin.token"))
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := client.New(client.Config{Server: "http://" + s.addr, Token: strings.TrimSpace(string(secret))})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// await waits until ok reports true for a job.
func await(t *testing.T, c *client.Client, id lessor.JobID, what string, ok func(lessor.Job) bool) lessor.Job {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		j, err := c.Job(t.Context(), id)
		if err == nil && ok(j) {
			return j
		}
		if time.Now().After(deadline) {
			t.Fatalf("job is %s, attempt %d, reattached %v (%v): never %s", j.State, j.Attempt, j.Reattached, err, what)
		}
	}
}

// A killed shim, alone or with its command, costs an attempt but no job: the lease expires, or the server notices the
// silent sentinel first if the ttl is long.
func TestKilledShimIsRetried(t *testing.T) {
	for _, c := range []struct {
		name  string
		ttl   string
		group bool
		why   string
	}{
		{"shim, its lease runs out", "2s", false, ""},
		{"group, its lease runs out", "2s", true, ""},
		{"shim, found dead by its sentinel", "1h", false, "Heartbeat stopped"},
		{"group, found dead by its sentinel", "1h", true, "Heartbeat stopped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // each waits for seconds
			workspace := t.TempDir()
			s := start(t, append(watching(workspace),
				"LESSOR_LEASE_TTL="+c.ttl, "LESSOR_CAPACITY_BUSY=0", "LESSOR_JOBS_BACKOFF_FIRST=10ms")...)
			// Only the first attempt waits; it writes its process id and that of its shim.
			script := `[ "$LESSOR_ATTEMPT" = 1 ] || exit 0
echo $$ $PPID > who.new; mv who.new ` + workspace + `/who; sleep 300`
			w := &worker{t: t, env: []string{"LESSOR_SENTINEL_INTERVAL=100ms"}, args: []string{
				"work", "--type", "long", "--server", "http://" + s.addr, "--workspace", workspace,
				"--shell", "--", script,
			}}
			w.start()
			t.Cleanup(func() {
				w.kill()
				endShims(t, workspace)
			})
			api := s.client()
			id := submitLong(t, api, "{}")
			command, shim := processIDs(t, filepath.Join(workspace, "who"))
			killAll(t, shim)
			if c.group {
				killAll(t, -command)
			} else {
				t.Cleanup(func() { _ = syscall.Kill(-command, syscall.SIGKILL) }) // the orphan
			}
			j := await(t, api, id, "completed", func(j lessor.Job) bool { return j.State == lessor.Completed })
			if j.Attempt != 2 {
				t.Errorf("completed in attempt %d, want 2", j.Attempt)
			}
			failed, err := s.admin().FailedJobs(t.Context())
			if err != nil || (c.why != "") != (len(failed.FailedJobs) == 1) {
				t.Errorf("found dead: %+v, %v; want %q", failed, err, c.why)
			}
		})
	}
}

// processIDs reads the process ids that a command wrote: its own, which is also its group, and its shim's.
func processIDs(t *testing.T, file string) (command, shim int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		raw, err := os.ReadFile(file)
		if _, scanErr := fmt.Sscan(string(raw), &command, &shim); err == nil && scanErr == nil {
			return command, shim
		}
		if time.Now().After(deadline) {
			t.Fatalf("the command did not start: %q, %v", raw, err)
		}
	}
}

func killAll(t *testing.T, id int) {
	t.Helper()
	if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %s: %v", strconv.Itoa(id), err)
	}
}

// After a kill and a restart, the server finds a running command again, and completes one that ended meanwhile instead
// of running it again.
func TestRestartFindsCommandsAgain(t *testing.T) {
	workspace := t.TempDir()
	s := start(t, append(watching(workspace), "LESSOR_LEASE_TTL=5s", "LESSOR_CAPACITY_BUSY=0")...)
	begun := filepath.Join(t.TempDir(), "begun")
	w := &worker{t: t, env: []string{"LESSOR_SENTINEL_INTERVAL=100ms"}, args: []string{
		"work", "--type", "long", "--concurrency", "2", "--server", "http://" + s.addr, "--workspace", workspace,
		"--shell", "--", sleepScript(begun),
	}}
	w.start()
	t.Cleanup(func() {
		w.kill()
		endShims(t, workspace)
	})
	api := s.client()
	running := func(j lessor.Job) bool { return j.State == lessor.Running }
	ids := map[lessor.JobID]string{}
	long, short := submitLong(t, api, `{"s":6}`), submitLong(t, api, `{"s":1}`)
	ids[long], ids[short] = `{"s":6}`, `{"s":1}`
	await(t, api, long, "running", running)
	await(t, api, short, "running", running)
	w.kill()
	s.kill()
	time.Sleep(2 * time.Second) // the short one ends while the server is down
	s.start()
	w.start()
	await(t, api, long, "reattached", func(j lessor.Job) bool { return j.Reattached })
	checkLong(t, api, ids, begun)
	st, err := s.admin().RecoveryStatus(t.Context())
	if err != nil || st.Summary.Dead != 0 || st.Recovery.State != lessor.RecoveryCompleted {
		t.Errorf("recovery: %+v, %v", st, err)
	}
}
