package agent

import (
	"context"
	"encoding/json"
)

// Adapter is a model provider. Complete may be called at once for several conversations.
type Adapter interface {
	// Complete asks the model for its next turn. It calls q.Beat whenever a part of the answer arrives, and returns
	// when ctx is done.
	Complete(ctx context.Context, q Question) (Reply, error)
}

// Question is what a model is asked: to go on with a conversation, with these tools at hand.
type Question struct {
	Turns []Turn
	Tools []Tool
	// Beat shows that the answer makes progress.
	Beat func()
}

// Role says who speaks in a turn.
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
	// Calls are the tools that an assistant wants to use.
	Calls []ToolCall
	// CallID names the call that a tool's turn answers.
	CallID string
}

// ToolCall is a model's wish to use a tool.
type ToolCall struct {
	ID   string
	Name string
	// Arguments are as the model wrote them, which need not be JSON.
	Arguments json.RawMessage
}

// Reply is a model's turn: a text, calls of tools, or both. One without calls ends the conversation.
type Reply struct {
	Text  string
	Calls []ToolCall
	Usage Usage
}

// Usage is what a model call has cost.
type Usage struct {
	InputTokens  int
	OutputTokens int
}
