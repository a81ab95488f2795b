package agent_test

import (
	"context"
	"fmt"
	"time"

	"lessor/agent"
	"lessor/worker"
)

// An agent with two tools: the first answers at once, the second beats while it works.
func Example() {
	ctx := context.Background()
	type place struct {
		City string `json:"city"`
	}
	const schema = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`
	forecast := agent.NewTool("forecast", "Tells the weather of a city.", schema,
		func(_ context.Context, _ *agent.ToolContext, p place) (string, error) { return p.City + ": rain", nil })
	simulate := agent.NewTool("simulate", "Computes the next three days.", schema,
		func(_ context.Context, t *agent.ToolContext, p place) ([]string, error) {
			var days []string
			for n := range 3 {
				t.Beat() // a day was computed: the lease may be extended
				days = append(days, fmt.Sprintf("day %d: rain", n+1))
			}
			return days, nil
		})
	executor, err := agent.NewExecutor(agent.ExecutorConfig{Tools: []agent.Tool{forecast, simulate}})
	if err != nil {
		fmt.Println(err)
		return
	}
	model := agent.Script( // a model that answers as written, in place of agent/openai
		agent.Use("forecast", `{"city":"Bergen"}`),
		agent.Use("simulate", `{"city":"Bergen"}`),
		agent.Say("Take an umbrella."),
	)
	inner := &agent.Inner{Adapter: model, Executor: executor, Budget: agent.Budget{Calls: 10}}
	prompt := func(p place) []agent.Turn {
		return []agent.Turn{{Role: agent.User, Text: "What shall I take to " + p.City + "?"}}
	}

	requests, replies := worker.NewMemory(worker.MemoryConfig{}), worker.NewMemory(worker.MemoryConfig{})
	loop, err := agent.NewLoop(agent.LoopConfig[place, string]{
		Requests: requests,
		Execute:  agent.Ask[place, string](inner, prompt),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := worker.SendJSON(ctx, requests, place{"Bergen"}, replies); err != nil {
		fmt.Println(err)
	}
	if _, err := loop.Next(ctx, 0); err != nil {
		fmt.Println(err)
	}

	answers, err := replies.Receive(ctx, 1, time.Minute, 0)
	if err != nil || len(answers) == 0 {
		fmt.Println("no answer", err)
		return
	}
	result, err := worker.DecodeBody[agent.Result[string]](answers[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*result.Output)
	for _, c := range executor.Counts() {
		fmt.Printf("%s: %d calls, %d beats, %d extensions\n", c.Tool, c.Calls, c.Beats, c.Extensions)
	}
	// Output:
	// Take an umbrella.
	// (model): 3 calls, 6 beats, 1 extensions
	// forecast: 1 calls, 2 beats, 0 extensions
	// simulate: 1 calls, 5 beats, 0 extensions
}
