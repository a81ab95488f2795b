package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// Inner is the inner loop of an agent: it calls the model, runs the tools that the model calls, sends it the results,
// and repeats this until the model answers without a call. It beats at each model call. Several runs may use one
// Inner at once.
type Inner struct {
	Adapter Adapter
	// Executor runs the tools; it may have none.
	Executor *Executor
	Budget   Budget
}

// Response is the outcome of a run.
type Response struct {
	// Text is the last text of the model.
	Text string
	// Turns are the whole conversation.
	Turns []Turn
	// Calls counts the model calls, and Usage is their total cost.
	Calls int
	Usage Usage
}

// Run continues a conversation until the model has answered, the budget is spent or ctx is done. The response is
// valid even if there is an error.
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

// Ask returns an Execute function for a Loop that starts a new conversation for each request. The answer of the model
// is the output itself if Out is a string, and is decoded from JSON otherwise.
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
