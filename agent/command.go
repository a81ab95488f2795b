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
)

// Defaults of a command tool.
const (
	DefaultCommandTimeout = 10 * time.Minute
	DefaultCommandOutput  = 32 << 10
)

// commandGrace is how long a command that was killed may keep its output open.
const commandGrace = 2 * time.Second

// CommandConfig says which commands a model may run. Programs is required.
type CommandConfig struct {
	// Name is the tool's. Empty means "run_command".
	Name string
	// Programs are those that may be run, by the name or path the model gives. Their arguments are the model's to
	// choose: a program that runs others opens the door to all.
	Programs []string
	// Dir is where they run. Empty means where this process does.
	Dir string
	// Env is their whole environment. nil means none but PATH, since the process's own may hold secrets.
	Env []string
	// Timeout bounds one command. Zero means DefaultCommandTimeout.
	Timeout time.Duration
	// MaxOutput is how many bytes of the output are kept: the end, where errors are. Zero means DefaultCommandOutput.
	MaxOutput int
}

const commandSchema = `{"type":"object","properties":{"argv":{"type":"array","items":{"type":"string"},"minItems":1,` +
	`"description":"the program and its arguments; there is no shell"}},"required":["argv"],"additionalProperties":false}`

// NewCommand returns a tool that runs a command and beats whenever that writes something, so that a command which
// hangs in silence loses the lease. There is no shell. When its time is over or ctx is done, the command is killed
// with all it started.
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

// commandArguments are what the model gives.
type commandArguments struct {
	Argv []string `json:"argv"`
}

// commandResult is what the model is told.
type commandResult struct {
	ExitCode int    `json:"exit_code"`
	Output   string `json:"output"`
	// LeftOut counts the bytes of output before those that are told.
	LeftOut int64 `json:"left_out,omitempty"`
}

func (cfg CommandConfig) run(ctx context.Context, t *ToolContext, in commandArguments) (json.RawMessage, error) {
	if len(in.Argv) == 0 || !slices.Contains(cfg.Programs, in.Argv[0]) {
		return nil, fmt.Errorf("argv must begin with one of %s", strings.Join(cfg.Programs, ", "))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Timeout, fmt.Errorf("the command took longer than %s",
		cfg.Timeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, in.Argv[0], in.Argv[1:]...)
	out := &tail{beat: t.Beat, limit: cfg.MaxOutput}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = cfg.Dir, cfg.Env, out, out
	cmd.WaitDelay = commandGrace
	endGroup := ownGroup(cmd)
	err := cmd.Run()
	endGroup() // what it left running
	result := commandResult{Output: out.String(), LeftOut: out.dropped}
	switch exit, ended := errors.AsType[*exec.ExitError](err); {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w; its output until then: %s", context.Cause(ctx), result.Output)
	case ended:
		result.ExitCode = exit.ExitCode()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // it has ended well, and left something running
		return nil, err
	}
	return json.Marshal(result)
}

// tail keeps the end of what is written, and beats at every write. exec writes to it from one goroutine at a time.
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
