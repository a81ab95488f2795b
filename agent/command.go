package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"lessor/internal/plainjson"
)

// The defaults of a command tool.
const (
	DefaultCommandTimeout = 10 * time.Minute
	DefaultCommandOutput  = 32 << 10
)

// commandGrace is how long a killed command may keep its output open.
const commandGrace = 2 * time.Second

// CommandConfig configures a command tool. Programs is required.
type CommandConfig struct {
	// Name is the name of the tool. The default is "run_command".
	Name string
	// Programs are the names or paths of the programs that the model may run. The model chooses their arguments, so a
	// program that can run others allows all of them.
	Programs []string
	// Dir is the working directory. The default is that of this process.
	Dir string
	// Env is the whole environment. The default has only PATH, because the environment of this process may hold
	// secrets.
	Env []string
	// Timeout bounds one command. The default is DefaultCommandTimeout.
	Timeout time.Duration
	// MaxOutput is how many bytes of the end of the output are kept. The default is DefaultCommandOutput.
	MaxOutput int
}

const commandSchema = `{"type":"object","properties":{"argv":{"type":"array","items":{"type":"string"},"minItems":1,` +
	`"description":"the program and its arguments; there is no shell"}},` +
	`"required":["argv"],"additionalProperties":false}`

// NewCommand returns a tool that runs a command without a shell. It beats whenever the command writes output, so a
// command that hangs silently loses the lease. When Timeout is over or ctx is done, the command is killed with its
// process group. So is what it leaves running in the group. A process that left the group, such as a daemon, lives on.
func NewCommand(cfg CommandConfig) (Tool, error) {
	if len(cfg.Programs) == 0 {
		return Tool{}, errors.New("a command tool needs the programs that it may run")
	}
	if cfg.Name == "" {
		cfg.Name = "run_command"
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultCommandTimeout
	}
	if cfg.MaxOutput <= 0 {
		cfg.MaxOutput = DefaultCommandOutput
	}
	if cfg.Env == nil {
		cfg.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	description := "Runs a program and returns its output. Programs: " + strings.Join(cfg.Programs, ", ") + "."
	return NewTool(cfg.Name, description, commandSchema, cfg.run), nil
}

// commandArguments are the arguments that the model gives.
type commandArguments struct {
	Argv []string `json:"argv"`
}

// commandResult is the result that the model receives.
type commandResult struct {
	ExitCode int    `json:"exit_code"`
	Output   string `json:"output"`
	// LeftOut is the number of bytes before Output that were dropped.
	LeftOut int64 `json:"left_out,omitempty"`
}

func (cfg CommandConfig) run(ctx context.Context, t *ToolContext, in commandArguments) (json.RawMessage, error) {
	if len(in.Argv) == 0 || !slices.Contains(cfg.Programs, in.Argv[0]) {
		return nil, fmt.Errorf("argv must begin with one of %s", strings.Join(cfg.Programs, ", "))
	}
	late := fmt.Errorf("the command took longer than %g s", cfg.Timeout.Seconds())
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Timeout, late)
	defer cancel()
	cmd := exec.CommandContext(ctx, in.Argv[0], in.Argv[1:]...)
	out := &tail{beat: t.Beat, limit: cfg.MaxOutput}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = cfg.Dir, cfg.Env, out, out
	cmd.WaitDelay = commandGrace
	endGroup := ownGroup(cmd)
	err := cmd.Run()
	endGroup() // ends the processes of the group that the command left running
	result := commandResult{Output: out.String(), LeftOut: out.dropped}
	switch exit, ended := errors.AsType[*exec.ExitError](err); {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w; its output until then: %s", context.Cause(ctx), result.Output)
	case ended:
		result.ExitCode = exit.ExitCode()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // ErrWaitDelay: it succeeded and left a process running
		return nil, err
	}
	return plainjson.Marshal(result)
}

// tail keeps the end of the output and beats at every write. exec writes from one goroutine at a time.
type tail struct {
	beat    func()
	limit   int
	mu      sync.Mutex
	kept    bytes.Buffer
	dropped int64
}

// Write implements io.Writer.
func (w *tail) Write(p []byte) (int, error) {
	w.beat()
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(p)
	if over := len(p) - w.limit; over > 0 {
		p = p[over:]
		w.dropped += int64(over)
	}
	if over := w.kept.Len() + len(p) - w.limit; over > 0 {
		w.kept.Next(over)
		w.dropped += int64(over)
	}
	w.kept.Write(p)
	return n, nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kept.String()
}
