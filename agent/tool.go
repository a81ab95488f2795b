package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync/atomic"

	"lessor/worker"
)

// Tool is something that a model can use.
type Tool struct {
	// Name has letters, digits, hyphens and underscores, at most 64.
	Name string
	// Description tells the model when to use it.
	Description string
	// Schema is the JSON Schema of the arguments. Empty means an object without properties.
	Schema json.RawMessage
	// Call does the work and returns what the model is told. An error is told to the model too, and the conversation
	// goes on. A call that takes long calls t.Beat where it makes progress, and returns when ctx is done.
	Call func(ctx context.Context, t *ToolContext, arguments json.RawMessage) (string, error)
}

// Vitals are the signs by which a run is known to work. Both may be nil.
type Vitals struct {
	Heartbeat *worker.Heartbeat
	// Extender turns the beats into time, where there is a lease.
	Extender *worker.LeaseExtender
}

// ToolContext is what a tool knows of the run it works for.
type ToolContext struct {
	Vitals
	// Tool and CallID name the call.
	Tool   string
	CallID string

	counts *counts
	over   atomic.Bool
}

// Beat shows that the tool makes progress, which may extend the lease of the message. It does nothing where there is no
// heartbeat, and nothing after the tool has returned: what a tool leaves running is not the work.
func (c *ToolContext) Beat() {
	if c.Heartbeat == nil || c.over.Load() {
		return
	}
	if c.counts != nil {
		c.counts.beat(c.Heartbeat.Elapsed())
	}
	c.Heartbeat.Beat()
}

// NewTool returns a tool whose arguments are decoded into an In: unknown fields are refused, so that the model learns
// of its mistake. A result that is not a string is told to the model as JSON.
func NewTool[In, Out any](
	name, description, schema string, call func(ctx context.Context, t *ToolContext, in In) (Out, error),
) Tool {
	return Tool{
		Name: name, Description: description, Schema: json.RawMessage(schema),
		Call: func(ctx context.Context, t *ToolContext, arguments json.RawMessage) (string, error) {
			var in In
			if err := decodeStrictly(arguments, &in); err != nil {
				return "", fmt.Errorf("arguments: %w", err)
			}
			out, err := call(ctx, t, in)
			if err != nil {
				return "", err
			}
			if text, ok := any(out).(string); ok {
				return text, nil
			}
			text, err := json.Marshal(out)
			return string(text), err
		},
	}
}

// decodeStrictly reads exactly one JSON value. Nothing at all is an empty object, as some models have it.
func decodeStrictly(text json.RawMessage, into any) error {
	if len(bytes.TrimSpace(text)) == 0 {
		text = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// toolName is what every provider takes for a name.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// check says what is wrong with a tool.
func (t Tool) check() error {
	switch {
	case !toolName.MatchString(t.Name):
		return fmt.Errorf("tool %q: a name has letters, digits, hyphens and underscores, at most 64", t.Name)
	case t.Call == nil:
		return fmt.Errorf("tool %q has nothing to call", t.Name)
	case len(t.Schema) > 0 && !json.Valid(t.Schema):
		return fmt.Errorf("tool %q: its schema is not JSON", t.Name)
	}
	return nil
}
