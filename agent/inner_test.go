package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor/agent"
	"lessor/worker"
)

var greeting = []agent.Turn{{Role: agent.User, Text: "What is the weather?"}}

func TestInnerLoopSendsTheResultsOfToolsToTheModel(t *testing.T) {
	model := agent.Script(agent.Use("look", `{}`), agent.Say("It rains."))
	in := &agent.Inner{Adapter: model, Executor: executor(t,
		tool("look", func(context.Context, *agent.ToolContext) (string, error) {
			return "clouds", nil
		}))}
	got, err := in.Run(t.Context(), greeting, agent.Vitals{})
	if err != nil || got.Text != "It rains." || got.Calls != 2 {
		t.Fatalf("answer %q after %d calls, err %v", got.Text, got.Calls, err)
	}
	call := []agent.ToolCall{{ID: "call-look", Name: "look", Arguments: []byte(`{}`)}}
	want := []agent.Turn{
		greeting[0],
		{Role: agent.Assistant, Calls: call},
		{Role: agent.ToolRole, CallID: "call-look", Text: "clouds"},
		{Role: agent.Assistant, Text: "It rains."},
	}
	if diff := cmp.Diff(want, got.Turns); diff != "" {
		t.Errorf("conversation (-want +got):\n%s", diff)
	}
	if asked := model.Questions(); len(asked) != 2 || len(asked[1].Turns) != 3 || len(asked[1].Tools) != 1 {
		t.Errorf("asked %+v", asked)
	}
}

// TestCallsHaveIDsOfTheirOwn: a model uses one id for all calls, or none, and tools and results can tell them apart.
func TestCallsHaveIDsOfTheirOwn(t *testing.T) {
	calls := func(ids ...string) (s agent.Step) {
		for _, id := range ids {
			s.Reply.Calls = append(s.Reply.Calls, agent.ToolCall{ID: id, Name: "look", Arguments: []byte(`{}`)})
		}
		return s
	}
	var ids []string
	look := func(_ context.Context, t *agent.ToolContext) (string, error) {
		ids = append(ids, t.CallID)
		return "", nil
	}
	in := &agent.Inner{
		Adapter:  agent.Script(calls("a", "a"), calls("a", "a-2", "", ""), agent.Say("done")),
		Executor: executor(t, tool("look", look)),
	}
	got, err := in.Run(t.Context(), greeting, agent.Vitals{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "a-2", "a-3", "a-2-2", "call-2", "call-3"}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("ids of the calls (-want +got):\n%s", diff)
	}
	var told []string
	for _, turn := range got.Turns {
		if turn.Role == agent.ToolRole {
			told = append(told, turn.CallID)
		}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("ids that the model is told (-want +got):\n%s", diff)
	}
}

func TestInnerLoopBeatsAtEachModelCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		began := time.Now()
		var beats []time.Duration
		hb.Observe(func() { beats = append(beats, time.Since(began)) })
		slow := agent.Use("look", `{}`)
		slow.Takes = 40 * time.Second
		in := &agent.Inner{
			Adapter: agent.Script(slow, agent.Say("done")),
			Executor: executor(t, tool("look", func(context.Context, *agent.ToolContext) (string, error) {
				time.Sleep(time.Second)
				return "", nil
			})),
		}
		if _, err := in.Run(t.Context(), greeting, agent.Vitals{Heartbeat: &hb}); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{
			0, 40 * time.Second, 40 * time.Second, 41 * time.Second, 41 * time.Second,
			41 * time.Second,
		}
		if diff := cmp.Diff(want, beats); diff != "" {
			t.Errorf("beats around the call, the tool and the second call (-want +got):\n%s", diff)
		}
	})
}

// endless is a model that calls tools for ever.
type endless struct{ usage agent.Usage }

func (m endless) Complete(context.Context, agent.Question) (agent.Reply, error) {
	return agent.Reply{Calls: []agent.ToolCall{{Name: "look"}}, Usage: m.usage}, nil
}

func TestBudgetEndsARun(t *testing.T) {
	look := tool("look", func(context.Context, *agent.ToolContext) (string, error) {
		return strings.Repeat("x", 60<<10), nil
	})
	for _, c := range []struct {
		name   string
		usage  agent.Usage
		budget agent.Budget
		calls  int
		says   string
	}{
		{"calls", agent.Usage{}, agent.Budget{Calls: 3}, 3, "too many model calls"},
		{"calls by default", agent.Usage{}, agent.Budget{}, 100, "too many model calls"},
		{"tokens", agent.Usage{InputTokens: 60, OutputTokens: 40}, agent.Budget{Tokens: 250}, 3, "too many tokens"},
		{"tokens by default", agent.Usage{InputTokens: 200_000}, agent.Budget{}, 5, "too many tokens"},
		{"length", agent.Usage{}, agent.Budget{Calls: 1000}, 274, "the conversation is too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := &agent.Inner{Adapter: endless{c.usage}, Executor: executor(t, look), Budget: c.budget}
			got, err := in.Run(t.Context(), greeting, agent.Vitals{})
			if !errors.Is(err, agent.ErrBudgetSpent) || !strings.Contains(err.Error(), c.says) || got.Calls != c.calls {
				t.Errorf("ended after %d calls with %v, want after %d with %q", got.Calls, err, c.calls, c.says)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, agent.ErrDeadline)
		defer cancel()
		began := time.Now()
		in := &agent.Inner{Adapter: agent.Script(agent.Step{Hangs: true}), Executor: executor(t)}
		if _, err := in.Run(ctx, greeting, agent.Vitals{}); !errors.Is(err, agent.ErrDeadline) ||
			time.Since(began) != time.Minute {
			t.Errorf("ended after %s with %v", time.Since(began), err)
		}
	})
}

func TestNoToolIsStartedAfterTheContextIsDone(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	calls := 0
	step := agent.Step{Reply: agent.Reply{Calls: []agent.ToolCall{{Name: "stop"}, {Name: "stop"}}}}
	in := &agent.Inner{
		Adapter: agent.Script(step),
		Executor: executor(t, tool("stop", func(context.Context, *agent.ToolContext) (string, error) {
			calls++
			cancel(agent.ErrDeadline)
			return "", nil
		})),
	}
	if _, err := in.Run(ctx, greeting, agent.Vitals{}); !errors.Is(err, agent.ErrDeadline) || calls != 1 {
		t.Errorf("ended with %v after %d tools, want one", err, calls)
	}
}

func TestModelThatFailsEndsTheRun(t *testing.T) {
	broken := errors.New("overloaded")
	in := &agent.Inner{Adapter: agent.Script(agent.Step{Err: broken}), Executor: executor(t)}
	if _, err := in.Run(t.Context(), greeting, agent.Vitals{}); !errors.Is(err, broken) {
		t.Errorf("ended with %v", err)
	}
	in.Adapter = agent.Script()
	if _, err := in.Run(t.Context(), greeting, agent.Vitals{}); !errors.Is(err, agent.ErrScriptOver) {
		t.Errorf("ended with %v", err)
	}
}

func TestTooManyCallsAtOnceEndTheRun(t *testing.T) {
	step := agent.Step{Reply: agent.Reply{Calls: make([]agent.ToolCall, 65)}}
	in := &agent.Inner{Adapter: agent.Script(step), Executor: executor(t)}
	if _, err := in.Run(t.Context(), greeting, agent.Vitals{}); err == nil ||
		!strings.Contains(err.Error(), "65 tools at once") {
		t.Errorf("ended with %v", err)
	}
}

func TestAskDecodesTheAnswer(t *testing.T) {
	type weather struct {
		Rain bool `json:"rain"`
	}
	prompt := func(place string) []agent.Turn { return []agent.Turn{{Role: agent.User, Text: "Weather in " + place}} }
	model := agent.Script(agent.Say(`{"rain":true}`), agent.Say("It rains."), agent.Say("It rains."))
	in := &agent.Inner{Adapter: model, Executor: executor(t)}
	task := &agent.Task[string]{Request: "Bergen"}
	if got, err := agent.Ask[string, weather](in, prompt)(t.Context(), task); err != nil || !got.Rain {
		t.Errorf("answer %+v, err %v", got, err)
	}
	if got, err := agent.Ask[string, string](in, prompt)(t.Context(), task); err != nil || got != "It rains." {
		t.Errorf("answer %q, err %v", got, err)
	}
	if _, err := agent.Ask[string, weather](in, prompt)(t.Context(), task); err == nil {
		t.Error("prose passed as JSON")
	}
	if got := model.Questions()[0].Turns[0].Text; got != "Weather in Bergen" {
		t.Errorf("asked %q", got)
	}
}
