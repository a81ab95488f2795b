package agent

import (
	"context"
	"encoding/json"
)

// Adapter is a model provider. Complete may be called concurrently for several conversations.
type Adapter interface {
	// Complete requests the next turn from the model. It calls q.Beat whenever a part of the answer arrives, and
	// returns when ctx is done.
	Complete(ctx context.Context, q Question) (Reply, error)
}

// Question asks a model to continue a conversation with the given tools.
type Question struct {
	Turns []Turn
	Tools []Tool
	// Beat reports progress of the answer.
	Beat func()
}

// Role is the author of a turn.
type Role string

// The roles of a conversation.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Turn is one contribution to a conversation.
type Turn struct {
	Role Role
	Text string
	// Calls are the tool calls of an assistant's turn.
	Calls []ToolCall
	// CallID identifies the call that a tool's turn answers.
	CallID string
}

// ToolCall is a call of a tool, as the model requests it.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is what the model wrote; it may be invalid JSON.
	Arguments json.RawMessage
}

// Reply is the turn of a model: a text, tool calls, or both. A reply without calls ends the conversation.
type Reply struct {
	Text  string
	Calls []ToolCall
	Usage Usage
}

// Usage is the cost of a model call.
type Usage struct {
	InputTokens  int
	OutputTokens int
}
