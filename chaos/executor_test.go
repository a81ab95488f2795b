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

// worker is one `lessor work` that can be killed and started again.
type worker struct {
	t    *testing.T
	args []string
	env  []string
	wrap func(*exec.Cmd) // changes how it is started; nil = not at all
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

// kill is kill -9 of the process that this test started; the commands that it started go on.
func (w *worker) kill() {
	if w.cmd != nil {
		_ = w.cmd.Process.Kill() // it may have ended
		_ = w.cmd.Wait()         // it was killed
		w.cmd = nil
	}
}

// endShims tells every command that still runs to end: after a failed test its shim would try to report for ever.
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
// both together 20 times. No job is lost, none begins twice, none is called dead, and every result is recorded. On PostgreSQL the same
// happens on a smaller scale: what differs is the store, and that has its own proofs.
func TestKilledServerAndRunnerLoseNoJob(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { killServerAndRunner(t, 50, 20) })
	t.Run("postgres", func(t *testing.T) {
		db, err := pgtest.Start(t.Context(), pgtest.Options{Durable: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Stop(); err != nil {
				t.Error(err)
			}
		})
		killServerAndRunner(t, 12, 4, "LESSOR_STORE="+db.URL("postgres"))
	})
}

// killServerAndRunner kills each of the two, and both together, so many times while jobs run.
func killServerAndRunner(t *testing.T, jobs, kills int, env ...string) {
	workspace, begun := t.TempDir(), filepath.Join(t.TempDir(), "begun")
	env = append(env, "LESSOR_LEASE_TTL=5s", "LESSOR_CAPACITY_BUSY=0", "LESSOR_JOBS_BACKOFF_FIRST=10ms")
	s := start(t, append(watching(workspace), env...)...)
	script := `echo "$LESSOR_JOB_ID" >> ` + begun + `
sleep $(sed 's/[^0-9.]//g' "$LESSOR_PAYLOAD_FILE")
cp "$LESSOR_PAYLOAD_FILE" "$LESSOR_RESULT_FILE"`
	w := &worker{t: t, env: []string{"LESSOR_SENTINEL_INTERVAL=100ms"}, args: []string{
		"work", "--type", "long", "--concurrency", "10", "--server", "http://" + s.addr, "--workspace", workspace, "--shell", "--", script,
	}}
	c := s.client()
	w.start()
	t.Cleanup(func() {
		w.kill()
		endShims(t, workspace)
	})
	rounds := slices.Concat(slices.Repeat([]string{"server"}, kills), slices.Repeat([]string{"work"}, kills), slices.Repeat([]string{"both"}, kills))
	ids := map[lessor.JobID]string{}
	for i, victim := range rounds {
		if i < jobs { // one at a time, so that there are always some that wait, run and end
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
		t.Errorf("falsely dead: %+v, %v", failed, err)
	}
}

// submitLong submits a job whose payload says how many seconds it takes.
func submitLong(t *testing.T, c *client.Client, payload string) lessor.JobID {
	t.Helper()
	j, err := c.Submit(t.Context(), "long", json.RawMessage(payload), &lessor.SubmitOptions{IdempotencyKey: payload})
	if err != nil {
		t.Fatal(err)
	}
	return j.Job.ID
}

// checkLong waits for all jobs and counts how often each began.
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
			t.Errorf("job %s began %d times", id, n)
		}
	}
	t.Logf("%d jobs completed, each begun once; %d grants were never begun", len(ids), extra)
}
