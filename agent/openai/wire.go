package openai

import (
	"encoding/json"

	"lessor/agent"
)

// chatRequest is the body of a question.
type chatRequest struct {
	Model         string         `json:"model"`
	Messages      []chatMessage  `json:"messages"`
	Tools         []chatTool     `json:"tools,omitempty"`
	MaxTokens     int            `json:"max_tokens,omitempty"`
	Temperature   *float64       `json:"temperature,omitempty"`
	Stream        bool           `json:"stream"`
	StreamOptions map[string]any `json:"stream_options"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// chatCall is a tool call, or a part of one in a stream.
type chatCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// chatAnswer is an answer, or a part of one in a stream.
type chatAnswer struct {
	Choices []struct {
		Message      chatMessage `json:"message"`
		Delta        chatMessage `json:"delta"`
		FinishReason string      `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// noParameters is the schema of a tool without arguments.
const noParameters = `{"type":"object","properties":{}}`

// encode writes a question.
func (a *Adapter) encode(q agent.Question) ([]byte, error) {
	r := chatRequest{
		Model: a.cfg.Model, MaxTokens: a.cfg.MaxTokens, Temperature: a.cfg.Temperature,
		Stream: true, StreamOptions: map[string]any{"include_usage": true},
	}
	for _, t := range q.Turns {
		m := chatMessage{Role: string(t.Role), Content: &t.Text, ToolCallID: t.CallID}
		if t.Text == "" && len(t.Calls) > 0 {
			m.Content = nil // some providers refuse an empty text beside calls
		}
		for _, c := range t.Calls {
			call := chatCall{ID: c.ID, Type: "function"}
			call.Function.Name, call.Function.Arguments = c.Name, string(c.Arguments)
			m.ToolCalls = append(m.ToolCalls, call)
		}
		r.Messages = append(r.Messages, m)
	}
	for _, t := range q.Tools {
		tool := chatTool{Type: "function"}
		tool.Function.Name, tool.Function.Description, tool.Function.Parameters = t.Name, t.Description, t.Schema
		if len(t.Schema) == 0 {
			tool.Function.Parameters = json.RawMessage(noParameters)
		}
		r.Tools = append(r.Tools, tool)
	}
	return json.Marshal(r)
}
