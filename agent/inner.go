package agent

import (
	"cmp"
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
	// Uncertain answers, in the words of the tool, a call that an earlier attempt began and did not finish. ErrRunAgain
	// has the call made again; another error ends the run, and leaves the call uncertain. AskPerson returns such a
	// function. By default the model is told that the outcome is unknown. Calls of tools that are Idempotent are
	// repeated instead.
	Uncertain func(ctx context.Context, call UncertainCall) (string, error)
}

// Response is the outcome of a run.
type Response struct {
	// Text is the last text of the model.
	Text string
	// Turns are the whole conversation.
	Turns []Turn
	// Calls counts the model calls, Usage is what they have used in all, and Cost what that costs at the prices of the
	// budget.
	Calls int
	Usage Usage
	Cost  float64
}

// Run continues a conversation until the model has answered, the budget is spent or ctx is done. The response is
// valid even if there is an error.
//
// If v has a journal, Run records every answer of the model and every tool call, and a run that another attempt began
// continues where it was cut off: with the same turns, the same call ids and the budget that is left. The runs of one
// job are told apart by their order, so a job must not have several at once.
func (in *Inner) Run(ctx context.Context, turns []Turn, v Vitals) (Response, error) {
	r := &run{Inner: in, vitals: v, Response: Response{Turns: turns}}
	err := r.begin(ctx)
	for more := true; more && err == nil; {
		more, err = r.turn(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r.Response, err
}

// run is one conversation.
type run struct {
	*Inner
	Response
	vitals Vitals
	record *record
	size   int // of the conversation, in bytes
}

func (r *run) begin(ctx context.Context) (err error) {
	if r.record, err = openRecord(ctx, r.vitals.Journal); err == nil {
		r.Turns, err = r.record.begin(ctx, r.Turns)
	}
	for _, t := range r.Turns {
		r.size += len(t.Text)
	}
	return err
}

// turn takes one answer of the model and runs the tools that it calls. It reports whether the model wants another turn.
func (r *run) turn(ctx context.Context) (more bool, err error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	r.Cost = r.Budget.cost(r.Usage)
	if err := r.Budget.check(r.Response, r.size); err != nil {
		return false, err
	}
	r.Calls++
	reply, err := r.record.answer(ctx, r.Calls, func() (Reply, error) {
		reply, err := r.ask(ctx, r.Turns, r.vitals)
		reply.Calls = r.distinct(reply.Calls)
		return reply, err
	})
	if err != nil {
		return false, err
	}
	r.Usage.InputTokens += reply.Usage.InputTokens
	r.Usage.OutputTokens += reply.Usage.OutputTokens
	r.Cost = r.Budget.cost(r.Usage)
	r.Text = reply.Text
	r.Turns = append(r.Turns, Turn{Role: Assistant, Text: reply.Text, Calls: reply.Calls})
	r.size += len(reply.Text)
	for i, call := range reply.Calls {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		text, err := r.call(ctx, i, call)
		if err != nil {
			return false, err
		}
		r.size += len(call.Arguments) + len(text)
		r.Turns = append(r.Turns, Turn{Role: ToolRole, CallID: call.ID, Text: text})
	}
	return len(reply.Calls) > 0, nil
}

// distinct returns calls with ids that no other call of the conversation has: some models use one id again and again,
// and tools take the id of a call for the sign that it is repeated.
func (r *run) distinct(calls []ToolCall) []ToolCall {
	used := map[string]bool{}
	for _, t := range r.Turns {
		for _, c := range t.Calls {
			used[c.ID] = true
		}
	}
	calls = slices.Clone(calls)
	for i := range calls {
		c := &calls[i]
		name := cmp.Or(c.ID, "call")
		for n := 2; c.ID == "" || used[c.ID]; n++ {
			c.ID = fmt.Sprintf("%s-%d", name, n)
		}
		used[c.ID] = true
	}
	return calls
}

// outcomeUnknown is what the model is told about a call that an earlier attempt began and did not finish.
const outcomeUnknown = "error: outcome unknown: the program stopped during this call, which may have taken effect or " +
	"not. Find out before you call it again."

// call returns the result of a tool call for the model.
func (r *run) call(ctx context.Context, i int, call ToolCall) (string, error) {
	execute := func() (string, error) {
		turn, err := r.Executor.execute(ctx, call, r.vitals)
		if err != nil && ctx.Err() != nil {
			return "", err // it was stopped: what it has done is not known
		}
		return turn.Text, nil
	}
	key := fmt.Sprintf("%d/%d", r.Calls, i+1)
	again := func(int) (string, error) { return outcomeUnknown, nil }
	switch tool := r.Executor.byName[call.Name]; {
	case tool.Idempotent:
		again = func(int) (string, error) { return execute() }
	case r.Uncertain != nil:
		again = func(cuts int) (string, error) {
			return r.Uncertain(ctx, UncertainCall{ToolCall: call, Key: r.record.run + key, Cuts: cuts})
		}
	}
	return r.record.call(ctx, key, call, execute, again)
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
