//go:build unix

package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lessor/agent"
	"lessor/worker"
)

// run runs a command by the tool and returns what the model gets.
func run(t *testing.T, ctx context.Context, cfg agent.CommandConfig, v agent.Vitals, argv ...string) string {
	t.Helper()
	if cfg.Programs == nil {
		cfg.Programs = []string{"sh"}
	}
	command, err := agent.NewCommand(cfg)
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := json.Marshal(map[string]any{"argv": argv})
	if err != nil {
		t.Fatal(err)
	}
	return executor(t, command).Execute(ctx, agent.ToolCall{Name: "run_command", Arguments: arguments}, v).Text
}

func TestCommandReturnsOutputAndExitCode(t *testing.T) {
	got := run(t, t.Context(), agent.CommandConfig{}, agent.Vitals{}, "sh", "-c", "echo out; echo err >&2; exit 3")
	if got != `{"exit_code":3,"output":"out\nerr\n"}` {
		t.Errorf("the model gets %s", got)
	}
}

func TestCommandRunsInItsFolderWithItsEnvironment(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("API_KEY", "secret")
	got := run(t, t.Context(), agent.CommandConfig{Dir: dir}, agent.Vitals{}, "sh", "-c", `pwd; echo "key=$API_KEY"`)
	if want := `{"exit_code":0,"output":"` + dir + `\nkey=\n"}`; got != want {
		t.Errorf("the model gets %s, want %s", got, want)
	}
	got = run(t, t.Context(), agent.CommandConfig{Env: []string{"API_KEY=given", "PATH=" + os.Getenv("PATH")}},
		agent.Vitals{}, "sh", "-c", "echo $API_KEY")
	if !strings.Contains(got, "given") {
		t.Errorf("the model gets %s", got)
	}
}

func TestCommandThatIsNotAllowedIsNotRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "made")
	for _, argv := range [][]string{
		{"touch", file},
		{"/bin/sh", "-c", "touch " + file},
		{"sh -c touch", file},
		{""},
		{},
	} {
		if got := run(t, t.Context(), agent.CommandConfig{}, agent.Vitals{}, argv...); !strings.HasPrefix(got,
			"error: argv must begin with one of sh") {
			t.Errorf("%q: the model gets %s", argv, got)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the command was run")
	}
	if _, err := agent.NewCommand(agent.CommandConfig{}); err == nil {
		t.Error("a tool that may run nothing was accepted")
	}
	if got := run(t, t.Context(), agent.CommandConfig{Programs: []string{"no-such-program"}}, agent.Vitals{},
		"no-such-program"); !strings.HasPrefix(got, "error: ") {
		t.Errorf("a program that is not there: the model gets %s", got)
	}
}

func TestCommandBeatsWhenItWrites(t *testing.T) {
	var hb worker.Heartbeat
	beats := 0
	hb.Observe(func() { beats++ })
	run(t, t.Context(), agent.CommandConfig{}, agent.Vitals{Heartbeat: &hb}, "sh", "-c", "true")
	if beats != 2 {
		t.Errorf("%d beats of a command that writes nothing, want those before and after it", beats)
	}
	beats = 0
	// Each line waits for the last to be read, so that they cannot be read at once.
	run(t, t.Context(), agent.CommandConfig{}, agent.Vitals{Heartbeat: &hb}, "sh", "-c",
		"for i in 1 2 3; do echo $i; sleep 0.1; done")
	if beats < 4 {
		t.Errorf("%d beats of a command that writes three lines", beats)
	}
}

func TestCommandKeepsTheEndOfItsOutput(t *testing.T) {
	got := run(t, t.Context(), agent.CommandConfig{MaxOutput: 6}, agent.Vitals{}, "sh", "-c",
		"echo 0123456789; sleep 0.1; echo end")
	if got != `{"exit_code":0,"output":"9\nend\n","left_out":9}` {
		t.Errorf("the model gets %s", got)
	}
}

func TestCommandThatTakesTooLongIsKilledWithItsGroup(t *testing.T) {
	for name, cancelled := range map[string]bool{"its own time": false, "the run's": true} {
		t.Run(name, func(t *testing.T) {
			pidFile := filepath.Join(t.TempDir(), "pid")
			ctx, cfg := t.Context(), agent.CommandConfig{Timeout: time.Second}
			want := "error: the command took longer than 1 s; its output until then: begun\n"
			if cancelled {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, time.Second, agent.ErrDeadline)
				defer cancel()
				cfg.Timeout, want = 0, "error: deadline has passed; its output until then: begun\n"
			}
			began := time.Now()
			got := run(t, ctx, cfg, agent.Vitals{}, "sh", "-c", "sleep 100 & echo $! > "+pidFile+"; echo begun; wait")
			if got != want || time.Since(began) > 10*time.Second {
				t.Errorf("after %s the model gets %q, want %q", time.Since(began), got, want)
			}
			wantEnded(t, pidFile)
		})
	}
}

func TestCommandLeavesNothingOfItsGroupRunning(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	got := run(t, t.Context(), agent.CommandConfig{}, agent.Vitals{}, "sh", "-c",
		"sleep 100 >/dev/null 2>&1 & echo $! > "+pidFile)
	if got != `{"exit_code":0,"output":""}` {
		t.Errorf("the model gets %s", got)
	}
	wantEnded(t, pidFile)
}

// wantEnded waits until the process is gone: a killed process takes a moment.
func wantEnded(t *testing.T, pidFile string) {
	t.Helper()
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err == nil && strings.Contains(string(stat), ") Z ") || syscall.Kill(pid, 0) != nil {
			return // gone, or dead and not yet collected
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
}
