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

	"lessor/internal/plainjson"
	"lessor/worker"
)

// Tool is a function that a model can call.
type Tool struct {
	// Name has at most 64 letters, digits, hyphens and underscores.
	Name string
	// Description tells the model when to use it.
	Description string
	// Schema is the JSON Schema of the arguments. The default is an object without properties.
	Schema json.RawMessage
	// Idempotent says that the same call may be made twice: one that was cut off is repeated with the same CallID.
	Idempotent bool
	// Call does the work and returns the result for the model. The model also receives an error, and the conversation
	// continues. A long call must call t.Beat where it makes progress, and return when ctx is done.
	Call func(ctx context.Context, t *ToolContext, arguments json.RawMessage) (string, error)
}

// Vitals are what keeps a run alive. Each may be nil.
type Vitals struct {
	Heartbeat *worker.Heartbeat
	// Extender extends the lease when Heartbeat beats.
	Extender *worker.LeaseExtender
	// Journal keeps the run over attempts. It is that of a job, or of a message.
	Journal *worker.Journal
}

// ToolContext describes the call to its tool.
type ToolContext struct {
	Vitals
	// Tool and CallID identify the call within its run, also when it is repeated. A run gives calls other ids where the
	// model has used one twice.
	Tool   string
	CallID string

	counts *counts
	over   atomic.Bool
}

// Beat reports that the tool makes progress, which may extend the lease of the message. It does nothing if there is
// no heartbeat or if the tool has returned: goroutines that a tool leaves running are not its work.
func (c *ToolContext) Beat() {
	if c.Heartbeat == nil || c.over.Load() {
		return
	}
	if c.counts != nil {
		c.counts.beat(c.Heartbeat.Elapsed())
	}
	c.Heartbeat.Beat()
}

// NewTool returns a tool whose arguments are decoded into In. Unknown fields are refused, so that the model learns of
// its mistake. The model receives a string as it is, and any other result as JSON.
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
			text, err := plainjson.Marshal(out)
			return string(text), err
		},
	}
}

// decodeStrictly decodes exactly one JSON value. Empty input, which some models send, is an empty object.
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

// toolName matches the names that every provider accepts.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// check returns an error if the tool is invalid.
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
