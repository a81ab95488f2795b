package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lessor"
)

// TestStopGivesJobsBack stops a Runner that stops its commands, each of which ends in another way. One of them was
// started by an earlier Runner.
func TestStopGivesJobsBack(t *testing.T) {
	for _, c := range []struct {
		name, script string
		want         lessor.State
		checkpoint   string
	}{
		{
			"saves and exits with 0", `trap 'echo "{\"at\":2}" > "$LESSOR_CHECKPOINT_FILE"; exit 0' TERM`,
			lessor.Queued, `{"at":2}`,
		},
		{"dies of the signal", ``, lessor.Queued, `{"at":1}`},
		{"must be killed", `trap '' TERM`, lessor.Queued, `{"at":1}`},
		{"finishes its work", `trap 'echo "{}" > "$LESSOR_RESULT_FILE"; exit 0' TERM`, lessor.Completed, `{"at":1}`},
		{"adopted", ``, lessor.Queued, `{"at":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, time.Minute)
			script := `echo '{"at":1}' > "$LESSOR_CHECKPOINT_FILE"; ` + c.script +
				"\necho > begun; while :; do sleep 0.05; done"
			ends := func(cfg *Config) { cfg.OnStop, cfg.StopGrace = OnStopStop, 5*time.Second }
			first := ends
			if c.name == "adopted" {
				first = nil
			}
			stop := b.work(first, script)
			id := b.submit("{}")
			b.awaitFile(id, "begun")
			if c.name == "adopted" {
				stop()
				stop = b.work(ends, script)
			}
			start := time.Now()
			stop()
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("the stop took %s, want less than 5 s", took)
			}
			j, err := b.client.Job(t.Context(), id)
			if err != nil || j.State != c.want || string(j.Checkpoint) != c.checkpoint {
				t.Errorf("the job is %s with checkpoint %s (%v), want %s with %s",
					j.State, j.Checkpoint, err, c.want, c.checkpoint)
			}
			if attempts := map[lessor.State]int{lessor.Queued: 0, lessor.Completed: 1}; j.Attempt != attempts[c.want] {
				t.Errorf("the job has had %d attempts, want %d", j.Attempt, attempts[c.want])
			}
		})
	}
}

// TestStopGivesJobsBackOnAFullDisk stops a Runner that cannot write the instructions to its shims. The command takes
// longer to end than the Runner takes to repeat the stop.
func TestStopGivesJobsBackOnAFullDisk(t *testing.T) {
	b := newBench(t, time.Minute)
	b.mountWorkspace("1m")
	stop := b.work(func(c *Config) {
		c.OnStop, c.StopGrace, c.Task.KillGrace = OnStopStop, 8*time.Second, 5*time.Second
		c.Task.PulseEvery = time.Hour // each pulse frees the space of the one before
	}, `trap 'sleep 2; exit 1' TERM; echo > begun; while :; do sleep 0.05; done`)
	id := b.submit("{}")
	b.awaitFile(id, "begun")
	b.awaitState(id, lessor.Running)
	for _, name := range []string{"full", "fuller"} {
		_ = os.WriteFile(filepath.Join(b.workspace, name), make([]byte, 2<<20), 0o600) // writes what fits
	}
	stop()
	j, err := b.client.Job(t.Context(), id)
	if err != nil || j.State != lessor.Queued || j.Attempt != 0 {
		t.Errorf("the job is %s after %d attempts (%v), want queued after 0", j.State, j.Attempt, err)
	}
}

// TestStopGivesBackWhatWasNotStarted stops a Runner that stops its commands, while a job that it was granted has no
// command yet: the answer to the request did not arrive, or came with the stop.
func TestStopGivesBackWhatWasNotStarted(t *testing.T) {
	stops := func(c *Config) { c.OnStop = OnStopStop }
	grant := func(t *testing.T, b *bench, worker, jobType string) lessor.Grant {
		grants, _, err := b.client.Request(t.Context(), lessor.LeaseRequest{
			WorkerID: &worker, Types: []string{jobType},
		})
		if err != nil || len(grants) != 1 {
			t.Fatalf("request: %v, %v; want one grant", grants, err)
		}
		return grants[0]
	}
	wantBack := func(t *testing.T, b *bench, id lessor.JobID) {
		j, err := b.client.Job(t.Context(), id)
		if err != nil || j.State != lessor.Queued || j.Attempt != 0 || j.Interruptions != 0 {
			t.Errorf("the job is %s after %d attempts and %d interruptions (%v), want queued after 0 and 0",
				j.State, j.Attempt, j.Interruptions, err)
		}
		if out := b.read(id, stdoutName); out != "" {
			t.Errorf("its command printed %q, want that it was not started", out)
		}
		grant(t, b, "another", j.Type) // at once
	}
	t.Run("lost answer", func(t *testing.T) {
		b := newBench(t, time.Minute)
		r := b.runner(stops, "echo ran")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ran := make(chan error, 1)
		go func() { ran <- r.Run(ctx) }()
		b.awaitState(b.submit("{}"), lessor.Completed) // the Runner has looked for leases of an earlier one
		other, err := b.client.Submit(t.Context(), "other", json.RawMessage("{}"), nil)
		if err != nil {
			t.Fatal(err)
		}
		grant(t, b, r.Worker(), "other") // the Runner does not hear of it
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("run: %v", err)
		}
		wantBack(t, b, other.Job.ID)
	})
	t.Run("late answer", func(t *testing.T) {
		b := newBench(t, time.Minute)
		r := b.runner(stops, "echo ran")
		r.lifetime = lifetime{stops: true}
		id := b.submit("{}")
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		r.take(stopped, t.Context(), grant(t, b, r.Worker(), "t"))
		r.shims.Wait()
		wantBack(t, b, id)
	})
}

// TestLeaseOfACommandThatDoesNotStopIsKept: the shim hangs, and its command may still run when the Runner has stopped.
// The job must not be given to another worker before its lease expires.
func TestLeaseOfACommandThatDoesNotStopIsKept(t *testing.T) {
	b := newBench(t, time.Minute)
	stop := b.work(func(c *Config) { c.OnStop, c.StopGrace = OnStopStop, 3*time.Second },
		`echo $PPID > shim; while :; do sleep 0.05; done`)
	id := b.submit("{}")
	shim, err := strconv.Atoi(b.awaitFile(id, "shim"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(shim, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(shim, syscall.SIGCONT) }() // the shim has not ended
	stop()
	j, err := b.client.Job(t.Context(), id)
	if err != nil || j.LeaseID == nil {
		t.Errorf("the job is %s without a lease (%v), want that the lease is kept", j.State, err)
	}
}

// TestLifetimeFollowsTheSupervisor checks whether commands outlive their Runner under each supervisor: a terminal, a
// container, a systemd that allows scopes and one that does not, and units that end in different ways.
func TestLifetimeFollowsTheSupervisor(t *testing.T) {
	service := "0::/system.slice/lessor-work.service"
	scope := "systemd-run --scope --quiet --collect --"
	for _, c := range []struct {
		name         string
		at           supervision
		on           OnStop
		mode, scopes string // the output of systemctl, and the script of systemd-run
		stops, dies  bool
		scope        string
	}{
		{
			"terminal",
			supervision{50, 40, "systemd", "0::/user.slice/session-2.scope"},
			OnStopAuto, "", "", false,
			false, "",
		},
		{
			"daemon",
			supervision{50, 1, "systemd", "0::/user.slice/session-2.scope"},
			OnStopAuto, "", "", false, false,
			"",
		},
		{"process 1", supervision{1, 0, "lessor", "0::/"}, OnStopAuto, "", "", true, true, ""},
		{"process 1, told to leave them", supervision{1, 0, "lessor", "0::/"}, OnStopLeave, "", "", false, true, ""},
		{"below tini", supervision{7, 1, "tini", "0::/"}, OnStopAuto, "", "", true, true, ""},
		{
			"unit with scopes",
			supervision{50, 1, "systemd", service},
			OnStopAuto, "control-group", `"$@"`, false, false,
			scope,
		},
		{
			"unit without scopes",
			supervision{50, 1, "systemd", service},
			OnStopAuto, "control-group", "exit 1", true, true,
			"",
		},
		{
			"unit without scopes, told to leave them",
			supervision{50, 1, "systemd", service},
			OnStopLeave, "mixed", "exit 1", false, true,
			"",
		},
		{
			"unit with scopes, told to stop them",
			supervision{50, 1, "systemd", service},
			OnStopStop, "mixed", `"$@"`, true, false,
			"",
		},
		{
			"unit that leaves them",
			supervision{50, 1, "systemd", service},
			OnStopAuto, "process", "exit 1", false,
			false, "",
		},
		{
			"control groups of version 1",
			supervision{50, 1, "systemd", "4:pids:/x\n1:name=systemd:/system.slice/w.service"},
			OnStopAuto,
			"mixed", "exit 1", true, true, "",
		},
		{
			"user's unit",
			supervision{50, 9, "systemd", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/w.service"},
			OnStopAuto, "control-group", `"$@"`, false, false, "systemd-run --user --scope --quiet --collect --",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeSystemd(t, c.mode, c.scopes)
			f := lifetimeOf(t.Context(), c.at, c.on)
			if f.stops != c.stops || (f.dies != "") != c.dies || strings.Join(f.scope, " ") != c.scope {
				t.Errorf("lifetime %+v, want stops %v, dies %v, scope %q", f, c.stops, c.dies, c.scope)
			}
		})
	}
}

// fakeSystemd puts a systemctl that prints mode, and a systemd-run that runs a script, first on PATH. The script has
// the command, without the options, in "$@".
func fakeSystemd(t *testing.T, mode, script string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"systemctl":   "echo " + mode,
		"systemd-run": `while [ "$1" != -- ]; do shift; done; shift` + "\n" + script,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "#!/bin/sh\n%s\n", text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestShimRunsInItsScope starts a shim through systemd-run, which must pass on the lock and the pipe of the Runner.
func TestShimRunsInItsScope(t *testing.T) {
	fakeSystemd(t, "control-group", `case $PWD in */jobs/*) echo ran >> scopes ;; esac; exec "$@"`)
	b := newBench(t, 10*time.Second)
	r := b.runner(nil, `echo done`)
	r.lifetime = lifetimeOf(t.Context(), supervision{50, 1, "systemd", "0::/system.slice/w.service"}, OnStopAuto)
	if r.lifetime.scope == nil {
		t.Fatal("the Runner uses no scope, want one")
	}
	id := b.submit("{}")
	grants, _, err := r.client.Request(t.Context(), r.request("one", 1))
	if err != nil || len(grants) != 1 {
		t.Fatalf("request: %v, %v; want one grant", grants, err)
	}
	r.follow(t.Context(), t.Context(), grants[0])
	if j := b.awaitState(id, lessor.Completed); j.Attempt != 1 || b.read(id, "scopes") != "ran\n" {
		t.Errorf("attempt %d, scopes %q; want attempt 1 in one scope", j.Attempt, b.read(id, "scopes"))
	}
}
