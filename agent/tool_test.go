package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor/agent"
	"lessor/worker"
)

func TestBeatOfAToolReachesTheHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		hb.Beat()
		tc := agent.ToolContext{Vitals: agent.Vitals{Heartbeat: &hb}}
		time.Sleep(100 * time.Millisecond)
		tc.Beat()
		if got := hb.Elapsed(); got != 0 {
			t.Errorf("%s elapsed since the beat of the tool", got)
		}
		(&agent.ToolContext{}).Beat() // without a heartbeat it does nothing
	})
}

func TestArgumentsAreDecodedStrictly(t *testing.T) {
	type in struct {
		Path string `json:"path"`
	}
	tool := agent.NewTool("read", "", "", func(_ context.Context, _ *agent.ToolContext, a in) (string, error) {
		return "path=" + a.Path, nil
	})
	for arguments, want := range map[string]string{
		`{"path":"a"}`:            "path=a",
		``:                        "path=",
		"{\"path\":\"a\"}\n":      "path=a",
		`{"path":"a","mode":"w"}`: `error: arguments: json: unknown field "mode"`,
		`{"path":"a"}{}`:          "error: arguments: more than one JSON value",
		`{"path":`:                "error: arguments: unexpected EOF",
		`["a"]`:                   "error: arguments: json: cannot unmarshal array",
	} {
		got := executor(t, tool).Execute(t.Context(),
			agent.ToolCall{Name: "read", Arguments: json.RawMessage(arguments)}, agent.Vitals{})
		if !strings.HasPrefix(got.Text, want) {
			t.Errorf("arguments %s: got %q, want %q", arguments, got.Text, want)
		}
	}
}

func TestResultThatIsNoTextIsSentAsJSON(t *testing.T) {
	tool := agent.NewTool("sum", "", "", func(context.Context, *agent.ToolContext, struct{}) ([]int, error) {
		return []int{1, 2}, nil
	})
	if got := executor(t, tool).Execute(t.Context(), agent.ToolCall{ID: "c1", Name: "sum"},
		agent.Vitals{}); got.Text != "[1,2]" || got.CallID != "c1" {
		t.Errorf("the model gets %+v", got)
	}
}

func TestBadToolsAreRefused(t *testing.T) {
	call := func(context.Context, *agent.ToolContext, json.RawMessage) (string, error) { return "", nil }
	good := agent.Tool{Name: "good", Call: call}
	for name, tools := range map[string][]agent.Tool{
		"no name":        {{Call: call}},
		"a bad name":     {{Name: "rm -rf", Call: call}},
		"a long name":    {{Name: strings.Repeat("x", 65), Call: call}},
		"no call":        {{Name: "x"}},
		"a bad schema":   {{Name: "x", Call: call, Schema: json.RawMessage("{")}},
		"one twice":      {good, good},
		"far too many":   make([]agent.Tool, 129),
		"the model's":    {{Name: "(model)", Call: call}},
		"one bad of two": {good, {}},
	} {
		if _, err := agent.NewExecutor(agent.ExecutorConfig{Tools: tools}); err == nil {
			t.Errorf("%s: accepted, want a refusal", name)
		}
	}
}
