package executor

import (
	"encoding/json"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/sentinel"
)

// The files of a job's folder besides those of package sentinel.
const (
	orderName      = ".grant.json"
	shimLogName    = "shim.log"
	stdoutName     = "stdout.log"
	stderrName     = "stderr.log"
	payloadName    = "payload.json"
	resultName     = "result.json"
	checkpointName = "checkpoint.json"
)

// Task says how a command is run for each job. It is written to a file, so it holds no secret.
type Task struct {
	// Command is the program and its arguments; with Shell they are joined and given to /bin/sh.
	Command []string `json:"command"`
	Shell   bool     `json:"shell"`
	// Env names the variables that a command gets besides the usual ones.
	Env []string `json:"env"`
	// Engine is what the sentinel calls the agent. Empty means "command".
	Engine string `json:"engine"`
	// ExtendOn is what keeps the lease: a command shows progress by output or by `lessor beat`.
	ExtendOn lessor.ExtendOn `json:"extend_on"`
	// MaxOutput bounds stdout.log and stderr.log each, in bytes: the end of the output is kept. Zero means 64 MiB.
	MaxOutput int64 `json:"max_output"`
	// PermanentExit are the exit codes after which a job is not retried.
	PermanentExit []int `json:"permanent_exit"`
	// Timeout ends a command that runs longer. Zero means never.
	Timeout time.Duration `json:"timeout"`
	// Nice is added to the command's niceness, Memory bounds the address space of each of its processes in bytes. Zero
	// leaves both as they are.
	Nice   int   `json:"nice"`
	Memory int64 `json:"memory"`
	// PulseEvery is how often the sentinel is written. Zero means 30 s.
	PulseEvery time.Duration `json:"pulse_every"`
	// KillGrace is the time between SIGTERM and SIGKILL. Zero means 10 s.
	KillGrace time.Duration `json:"kill_grace"`
}

func (t Task) withDefaults() Task {
	if t.Engine == "" {
		t.Engine = "command"
	}
	if t.MaxOutput == 0 {
		t.MaxOutput = 64 << 20
	}
	if t.PulseEvery == 0 {
		t.PulseEvery = 30 * time.Second
	}
	if t.KillGrace == 0 {
		t.KillGrace = 10 * time.Second
	}
	return t
}

// order tells a shim what to do.
type order struct {
	Grant  lessor.Grant `json:"grant"`
	Server string       `json:"server"`
	// TokenServer is the only one of Server that gets the token; "" = all.
	TokenServer string `json:"token_server,omitempty"`
	Task        Task   `json:"task"`
}

// maxOrder bounds an order: a payload of up to 16 MiB, a checkpoint, the command, all of it escaped.
const maxOrder = 64 << 20

func writeOrder(f *sentinel.Folder, o order) error {
	data, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode order: %w", err)
	}
	return f.WriteFile(orderName, data)
}

func readOrder(f *sentinel.Folder) (order, error) {
	var o order
	data, err := f.ReadFile(orderName, maxOrder)
	if err != nil {
		return o, fmt.Errorf("read order: %w", err)
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return o, fmt.Errorf("read order: %w", err)
	}
	return o, nil
}
