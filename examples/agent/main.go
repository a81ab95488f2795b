// Agent answers questions with a model and two tools. Every model call and every tool beats, and a beat extends the
// message: an agent that hangs loses its message to another worker. The model is scripted, so that the program runs
// without a provider; with LESSOR_MODEL_URL set, it calls the chat-completions API at that URL.
//
//	lessor submit questions --payload '{"city": "London"}'   the answer is the job's result
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"lessor/agent"
	"lessor/agent/openai"
	"lessor/client"
	"lessor/worker"
)

// Question is the body of a message.
type Question struct {
	City string `json:"city"`
}

const ask = "Do I need an umbrella in "

const citySchema = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`

// tools returns the tools of the model.
func tools() []agent.Tool {
	type place struct {
		City string `json:"city"`
	}
	forecast := agent.NewTool("forecast", "The weather of tomorrow in a city.", citySchema,
		func(_ context.Context, t *agent.ToolContext, p place) (string, error) {
			for range 3 { // pages of a slow service
				t.Beat()
			}
			return "rain in " + p.City, nil
		})
	clock := agent.NewTool("clock", "The time of day in UTC.", "",
		func(context.Context, *agent.ToolContext, struct{}) (string, error) {
			return time.Now().UTC().Format(time.TimeOnly), nil
		})
	return []agent.Tool{forecast, clock}
}

// scripted is a model that uses both tools for each question and then answers.
type scripted struct{}

// Complete implements agent.Adapter. The number of turns says how far the conversation is, so that any number of them
// may be held, and that an answer does not depend on what this process did before.
func (scripted) Complete(_ context.Context, q agent.Question) (agent.Reply, error) {
	switch len(q.Turns) {
	case 1:
		city, _ := strings.CutPrefix(strings.TrimSuffix(q.Turns[0].Text, "?"), ask)
		return agent.Use("forecast", fmt.Sprintf(`{"city":%q}`, city)).Reply, nil
	case 3:
		return agent.Use("clock", `{}`).Reply, nil
	}
	return agent.Say("Take an umbrella: " + q.Turns[2].Text).Reply, nil
}

// model returns the model.
func model() (agent.Adapter, error) {
	if url := os.Getenv("LESSOR_MODEL_URL"); url != "" {
		return openai.New(openai.Config{
			BaseURL: url, Key: openai.Key(os.Getenv("LESSOR_MODEL_KEY")),
			Model: cmp.Or(os.Getenv("LESSOR_MODEL"), "default"),
		})
	}
	return scripted{}, nil
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	c, err := client.New(client.Config{Server: os.Getenv("LESSOR_SERVER"), Token: os.Getenv("LESSOR_TOKEN")})
	if err != nil {
		return err
	}
	questions, err := worker.NewServerMailbox(worker.ServerMailboxConfig{Client: c, Type: "questions"})
	if err != nil {
		return err
	}
	executor, err := agent.NewExecutor(agent.ExecutorConfig{Tools: tools()})
	if err != nil {
		return err
	}
	adapter, err := model()
	if err != nil {
		return err
	}
	inner := &agent.Inner{Adapter: adapter, Executor: executor, Budget: agent.Budget{Calls: 10}}
	loop, err := agent.NewLoop(agent.LoopConfig[Question, string]{
		Requests: questions,
		Execute: agent.Ask[Question, string](inner, func(q Question) []agent.Turn {
			return []agent.Turn{{Role: agent.User, Text: ask + q.City + "?"}}
		}),
	})
	if err != nil {
		return err
	}
	if err := loop.Run(ctx); err != nil {
		return err
	}
	for _, n := range executor.Counts() {
		fmt.Fprintf(os.Stdout, "%+v\n", n)
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
