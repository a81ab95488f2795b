package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// Inner is the inner loop: it asks the model, runs the tools that it calls, tells it the results, and asks again
// until it answers without a call. It beats at each model call. It may be used for several runs at once.
type Inner struct {
	Adapter Adapter
	// Executor has the tools; one without tools is fine.
	Executor *Executor
	Budget   Budget
}

// Response is how a run ended.
type Response struct {
	// Text is the model's last.
	Text string
	// Turns are the whole conversation.
	Turns []Turn
	// Calls counts the model calls, Usage sums what they cost.
	Calls int
	Usage Usage
}

// Run goes on with a conversation until the model has its answer, the budget is spent or ctx is done. The response
// tells how far it came, also beside an error.
func (in *Inner) Run(ctx context.Context, turns []Turn, v Vitals) (Response, error) {
	r := Response{Turns: slices.Clone(turns)}
	size := 0
	for _, t := range turns {
		size += len(t.Text)
	}
	for {
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if err := in.Budget.check(spent{
			calls: r.Calls, tokens: r.Usage.InputTokens + r.Usage.OutputTokens,
			bytes: size,
		}); err != nil {
			return r, err
		}
		reply, err := in.ask(ctx, r.Turns, v)
		r.Calls++
		if err != nil {
			return r, err
		}
		r.Usage.InputTokens += reply.Usage.InputTokens
		r.Usage.OutputTokens += reply.Usage.OutputTokens
		r.Text = reply.Text
		r.Turns = append(r.Turns, Turn{Role: Assistant, Text: reply.Text, Calls: reply.Calls})
		size += len(reply.Text)
		if len(reply.Calls) == 0 {
			return r, nil
		}
		for _, call := range reply.Calls {
			if ctx.Err() != nil {
				return r, context.Cause(ctx)
			}
			turn := in.Executor.Execute(ctx, call, v)
			size += len(call.Arguments) + len(turn.Text)
			r.Turns = append(r.Turns, turn)
		}
	}
}

// ask makes one model call.
func (in *Inner) ask(ctx context.Context, turns []Turn, v Vitals) (reply Reply, err error) {
	in.Executor.step(modelName, "", v, func(t *ToolContext) error {
		reply, err = in.Adapter.Complete(ctx, Question{Turns: turns, Tools: in.Executor.tools, Beat: t.Beat})
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return reply, context.Cause(ctx)
	case err != nil:
		return reply, fmt.Errorf("ask the model: %w", err)
	case len(reply.Calls) > maxCallsATurn:
		return reply, fmt.Errorf("the model calls %d tools at once, more than %d", len(reply.Calls), maxCallsATurn)
	}
	return reply, nil
}

// Ask returns an Execute for a Loop that prompts the model anew for each request. The model's answer is the Out
// itself if that is a string, else JSON.
func Ask[Req, Out any](in *Inner, prompt func(Req) []Turn) func(context.Context, *Task[Req]) (Out, error) {
	return func(ctx context.Context, t *Task[Req]) (out Out, err error) {
		r, err := in.Run(ctx, prompt(t.Request), t.Vitals)
		if err != nil {
			return out, err
		}
		if text, ok := any(&out).(*string); ok {
			*text = r.Text
			return out, nil
		}
		if err := json.Unmarshal([]byte(r.Text), &out); err != nil {
			return out, fmt.Errorf("decode the model's answer: %w", err)
		}
		return out, nil
	}
}
