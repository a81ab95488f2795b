package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/pgtest"
)

// worker is a `lessor work` that can be killed and started again.
type worker struct {
	t    *testing.T
	args []string
	env  []string
	wrap func(*exec.Cmd) // changes the command before its start; nil = no change
	cmd  *exec.Cmd
}

func (w *worker) start() {
	w.t.Helper()
	w.cmd = exec.Command(binary, w.args...)
	w.cmd.Env = append(os.Environ(), w.env...)
	if w.wrap != nil {
		w.wrap(w.cmd)
	}
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
}

// kill sends SIGKILL to the process that this test started; the commands that it started continue.
func (w *worker) kill() {
	if w.cmd != nil {
		_ = w.cmd.Process.Kill() // it may have ended
		_ = w.cmd.Wait()         // it was killed
		w.cmd = nil
	}
}

// endShims asks every running command to end: after a failed test its shim would try to report for ever.
func endShims(t *testing.T, workspace string) {
	folders, err := filepath.Glob(filepath.Join(workspace, "jobs", "*"))
	if err != nil {
		t.Error(err)
	}
	for _, folder := range folders {
		err := os.WriteFile(filepath.Join(folder, ".stop"), []byte("9000000000000000000\n"), 0o600)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
}

// TestKilledServerAndRunnerLoseNoJob runs 50 commands while the server is killed 20 times, `lessor work` 20 times, and
// both together 20 times. No job is lost, none starts twice, none is declared dead, and every result is recorded. On
// PostgreSQL the test is smaller: only the store differs, and that has its own tests.
func TestKilledServerAndRunnerLoseNoJob(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { killServerAndRunner(t, 50, 20) })
	t.Run("postgres", func(t *testing.T) {
		db := database(t, pgtest.Options{Durable: true})
		killServerAndRunner(t, 12, 4, "LESSOR_STORE="+db.URL("postgres"))
	})
}

// killServerAndRunner kills each of the two, and both together, the given number of times while jobs run.
func killServerAndRunner(t *testing.T, jobs, kills int, env ...string) {
	workspace, begun := t.TempDir(), filepath.Join(t.TempDir(), "begun")
	env = append(env, "LESSOR_LEASE_TTL=5s", "LESSOR_CAPACITY_BUSY=0", "LESSOR_JOBS_BACKOFF_FIRST=10ms")
	s := start(t, append(watching(workspace), env...)...)
	w := &worker{t: t, env: []string{"LESSOR_SENTINEL_INTERVAL=100ms"}, args: []string{
		"work", "--type", "long", "--concurrency", "10", "--server", "http://" + s.addr, "--workspace", workspace,
		"--shell", "--", sleepScript(begun),
	}}
	c := s.client()
	w.start()
	t.Cleanup(func() {
		w.kill()
		endShims(t, workspace)
	})
	var rounds []string
	for _, victim := range []string{"server", "work", "both"} {
		rounds = append(rounds, slices.Repeat([]string{victim}, kills)...)
	}
	ids := map[lessor.JobID]string{}
	for i, victim := range rounds {
		if i < jobs { // one per round, so that some jobs always wait, run and end
			payload := fmt.Sprintf(`{"s":%d.%03d}`, 1+rand.N(4), i)
			ids[submitLong(t, c, payload)] = payload
		}
		time.Sleep(rand.N(250 * time.Millisecond))
		if victim != "work" {
			s.kill()
		}
		if victim != "server" {
			w.kill()
		}
		time.Sleep(rand.N(50 * time.Millisecond))
		if victim != "work" {
			s.start()
		}
		if victim != "server" {
			w.start()
		}
	}
	checkLong(t, c, ids, begun)
	if failed, err := s.admin().FailedJobs(t.Context()); err != nil || len(failed.FailedJobs) != 0 {
		t.Errorf("wrongly declared dead: %+v, %v", failed, err)
	}
}

// sleepScript is a command that appends its job's id to begun, sleeps for the seconds in its payload, and returns the
// payload as its result.
func sleepScript(begun string) string {
	return `echo "$LESSOR_JOB_ID" >> ` + begun + `
sleep $(sed 's/[^0-9.]//g' "$LESSOR_PAYLOAD_FILE")
cp "$LESSOR_PAYLOAD_FILE" "$LESSOR_RESULT_FILE"`
}

// submitLong submits a job for sleepScript.
func submitLong(t *testing.T, c *client.Client, payload string) lessor.JobID {
	t.Helper()
	options := &lessor.SubmitOptions{IdempotencyKey: payload}
	deadline := time.Now().Add(time.Minute) // the client itself gives up before a slow machine has started a server
	j, err := c.Submit(t.Context(), "long", json.RawMessage(payload), options)
	for lessor.CodeOf(err) == lessor.CodeUnavailable && time.Now().Before(deadline) {
		j, err = c.Submit(t.Context(), "long", json.RawMessage(payload), options)
	}
	if err != nil {
		t.Fatal(err)
	}
	return j.Job.ID
}

// checkLong waits for all jobs and checks that each started once.
func checkLong(t *testing.T, c *client.Client, ids map[lessor.JobID]string, begun string) {
	t.Helper()
	extra, deadline := 0, time.Now().Add(60*time.Second)
	for id, payload := range ids {
		j, err := c.Job(t.Context(), id)
		for ; err != nil || j.State != lessor.Completed; j, err = c.Job(t.Context(), id) {
			if time.Now().After(deadline) {
				t.Fatalf("job %s is %s (%v), error %v", id, j.State, err, j.Error)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if string(j.Result) != payload {
			t.Errorf("job %s has the result %s, want %s", id, j.Result, payload)
		}
		extra += j.Attempt - 1
	}
	raw, err := os.ReadFile(begun)
	if err != nil {
		t.Fatal(err)
	}
	starts := map[string]int{}
	for id := range strings.FieldsSeq(string(raw)) {
		starts[id]++
	}
	for id := range ids {
		if n := starts[id.String()]; n != 1 {
			t.Errorf("job %s started %d times", id, n)
		}
	}
	t.Logf("%d jobs completed, each started once; %d grants were never started", len(ids), extra)
}
