package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"unicode/utf8"
)

// The bounds of tools.
const (
	maxTools = 128
	// maxOutput is how many bytes of a result the model receives. More would fill its context.
	maxOutput = 64 << 10
)

// ExecutorConfig configures an Executor.
type ExecutorConfig struct {
	Tools []Tool
	// Log receives panics, and warnings about tools that are silent for too long. The default is slog.Default.
	Log *slog.Logger
}

// Executor runs tools, one call at a time for each run. It beats before and after every call, even if the tool fails
// or panics, keeps counters for each tool, and adapts the extension interval to the silences of the tool.
type Executor struct {
	tools  []Tool
	byName map[string]Tool
	counts map[string]*counts
	order  []string
	log    *slog.Logger
}

// NewExecutor checks the tools and returns an Executor.
func NewExecutor(cfg ExecutorConfig) (*Executor, error) {
	e := &Executor{
		tools: cfg.Tools, byName: map[string]Tool{}, log: cfg.Log,
		counts: map[string]*counts{modelName: {}}, order: []string{modelName},
	}
	if e.log == nil {
		e.log = slog.Default()
	}
	if len(cfg.Tools) > maxTools {
		return nil, fmt.Errorf("%d tools, more than %d", len(cfg.Tools), maxTools)
	}
	for _, t := range cfg.Tools {
		if err := t.check(); err != nil {
			return nil, err
		}
		if _, twice := e.byName[t.Name]; twice {
			return nil, fmt.Errorf("tool %q is there twice", t.Name)
		}
		e.byName[t.Name] = t
		e.counts[t.Name] = &counts{}
		e.order = append(e.order, t.Name)
	}
	return e, nil
}

// Execute runs one call and returns the turn that answers it. The turn also carries errors to the model.
func (e *Executor) Execute(ctx context.Context, call ToolCall, v Vitals) Turn {
	turn, _ := e.execute(ctx, call, v)
	return turn
}

// execute is Execute, and returns the error of the tool too.
func (e *Executor) execute(ctx context.Context, call ToolCall, v Vitals) (turn Turn, err error) {
	turn = Turn{Role: ToolRole, CallID: call.ID}
	tool, known := e.byName[call.Name]
	if !known {
		turn.Text = fmt.Sprintf("error: there is no tool %q", call.Name)
		return turn, nil
	}
	e.step(call.Name, call.ID, v, func(t *ToolContext) error {
		turn.Text, err = e.call(ctx, tool, t, call.Arguments)
		return err
	})
	if err != nil {
		turn.Text = "error: " + err.Error()
	}
	turn.Text = cut(turn.Text, maxOutput)
	return turn, err
}

// step runs one long operation with a beat before and after it, and counts the outcome.
func (e *Executor) step(name, callID string, v Vitals, do func(t *ToolContext) error) {
	c := e.counts[name]
	t := &ToolContext{Vitals: v, Tool: name, CallID: callID, counts: c}
	var made, failed int64
	if v.Extender != nil {
		e.expect(name, c, v)
		made, failed = v.Extender.Counts()
	}
	c.fade()
	if v.Heartbeat != nil {
		c.beats.Add(1) // the silence before it does not belong to this tool
		v.Heartbeat.Beat()
	}
	defer func() {
		t.Beat()
		t.over.Store(true)
		c.calls.Add(1)
		if v.Extender != nil {
			madeNow, failedNow := v.Extender.Counts()
			c.extensions.Add(madeNow - made)
			c.extensionFailures.Add(failedNow - failed)
			v.Extender.Expect(0) // the tool has ended
		}
	}()
	if err := do(t); err != nil {
		c.failures.Add(1)
	}
}

// expect prepares the lease for the longest silence of this tool.
func (e *Executor) expect(name string, c *counts, v Vitals) {
	silence := c.longest()
	if !v.Extender.Expect(silence) && c.warned.CompareAndSwap(false, true) {
		e.log.Warn("A tool is silent for longer than the lease lasts for certain: beat more often, or extend by more",
			"tool", name, "silence", silence, "extension", v.Extender.Extension())
	}
}

// call calls the tool. It returns a panic as an error.
func (e *Executor) call(
	ctx context.Context, tool Tool, t *ToolContext, arguments json.RawMessage,
) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			e.log.Error("A tool panicked", "tool", tool.Name, "panic", r, "stack", string(debug.Stack()))
			text, err = "", fmt.Errorf("tool %s panicked: %v", tool.Name, r)
		}
	}()
	return tool.Call(ctx, t, arguments)
}

// cut bounds a text and makes it valid.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	end := limit
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s\n[%d bytes more were left out]", text[:end], len(text)-end)
}
