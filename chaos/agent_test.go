package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/agent"
	"lessor/client"
	"lessor/internal/pgtest"
	sdk "lessor/worker"
)

// The environment of a process that is an agent: the server, how many model calls its run has, how it ends, after how
// many steps, and a file for what its tools do.
const (
	agentVariable = "LESSOR_CHAOS_AGENT"
	agentCalls    = "LESSOR_CHAOS_AGENT_CALLS"
	agentEnd      = "LESSOR_CHAOS_AGENT_END"
	agentSteps    = "LESSOR_CHAOS_AGENT_STEPS"
	agentEffects  = "LESSOR_CHAOS_AGENT_EFFECTS"
)

// agentTTL is short, so that the lease of a process that was killed expires soon.
const agentTTL = 700 * time.Millisecond

// agentProcess is a run of which every second answer calls a tool; every second tool may be repeated.
type agentProcess struct {
	calls, steps int
	end          func()
}

// step is before and after each model call and each effect of a tool.
func (p *agentProcess) step() {
	if p.steps--; p.steps == 0 {
		p.end()
	}
}

// Complete implements agent.Adapter. The answer depends on the place in the conversation alone.
func (p *agentProcess) Complete(ctx context.Context, q agent.Question) (agent.Reply, error) {
	n := 1
	for _, t := range q.Turns {
		if t.Role == agent.Assistant {
			n++
		}
	}
	p.step()
	reply := agent.Reply{Text: fmt.Sprint("answer ", n), Usage: agent.Usage{InputTokens: n, OutputTokens: 1}}
	if n < p.calls {
		reply.Calls = []agent.ToolCall{{ID: fmt.Sprint("call-", n), Name: toolOf(n)}}
	}
	p.step()
	return reply, ctx.Err()
}

func toolOf(n int) string {
	return []string{"", "", "careful", ""}[n%4] + []string{"repeated", "", "", ""}[n%4]
}

// effect appends a line to the file of effects.
func (p *agentProcess) effect(_ context.Context, c *agent.ToolContext, _ struct{}) (string, error) {
	p.step()
	f, err := os.OpenFile(os.Getenv(agentEffects), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	if _, err = fmt.Fprintln(f, c.CallID); err == nil {
		err = f.Close()
	}
	p.step()
	return "did " + c.CallID, err
}

// agentOutcome is what the run answers.
type agentOutcome struct {
	Text  string
	Calls int
	Usage agent.Usage
}

// runAgent is a process that handles one delivery of the request, unless it ends before.
func runAgent(server string) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	p := &agentProcess{end: stop}
	p.calls, _ = strconv.Atoi(os.Getenv(agentCalls))
	p.steps, _ = strconv.Atoi(os.Getenv(agentSteps))
	if os.Getenv(agentEnd) == "kill" {
		p.end = func() {
			self, _ := os.FindProcess(os.Getpid()) // it runs
			_ = self.Kill()
			select {}
		}
	}
	careful, repeated := agent.NewTool("careful", "", "", p.effect), agent.NewTool("repeated", "", "", p.effect)
	repeated.Idempotent = true
	executor, err := agent.NewExecutor(agent.ExecutorConfig{Tools: []agent.Tool{careful, repeated}})
	fatal(err)
	c, err := client.New(client.Config{Server: server})
	fatal(err)
	box, err := sdk.NewServerMailbox(sdk.ServerMailboxConfig{Client: c, Type: "requests"})
	fatal(err)
	inner := &agent.Inner{Adapter: p, Executor: executor, Budget: agent.Budget{Calls: p.calls, Tokens: 1 << 30}}
	loop, err := agent.NewLoop(agent.LoopConfig[map[string]string, agentOutcome]{
		Requests: box, Visibility: agentTTL, Log: slog.New(slog.DiscardHandler),
		Extender: sdk.LeaseExtenderConfig{Interval: sdk.EveryBeat, Extension: agentTTL},
		Execute: func(ctx context.Context, t *agent.Task[map[string]string]) (agentOutcome, error) {
			r, err := inner.Run(ctx, []agent.Turn{{Role: agent.User, Text: time.Now().String()}}, t.Vitals)
			return agentOutcome{r.Text, r.Calls, r.Usage}, err
		},
	})
	fatal(err)
	_, _ = loop.Next(ctx, 5*time.Second) // the server may be down: the next process goes on
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestAgentResumes stops or kills an agent at every step of its run, and the server now and then, on both stores: the
// answer and the budget are those of a run without faults, tools that must not be repeated run once, and there is no
// dead letter. With LESSOR_CHAOS=full the run has 200 model calls and 100 tools, and the server is killed 20 times.
func TestAgentResumes(t *testing.T) {
	calls, kills := 12, 3
	if os.Getenv("LESSOR_CHAOS") == "full" {
		calls, kills = 200, 20
	}
	settings := []string{"LESSOR_CAPACITY_BUSY=0", "LESSOR_LEASE_SWEEP=50ms"}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		agentRun{start(t, settings...), calls, kills}.test(t)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db := database(t, pgtest.Options{Durable: true})
		agentRun{start(t, append(settings, "LESSOR_STORE="+db.URL("postgres"))...), calls, kills}.test(t)
	})
}

type agentRun struct {
	*server
	calls, kills int
}

func (r agentRun) test(t *testing.T) {
	c := r.client()
	sent, err := c.SubmitJob(t.Context(), lessor.Submission{
		Type: new("requests"), Payload: json.RawMessage(`{"question":"work"}`),
		Backoff: &lessor.BackoffAsk{FirstMS: new(int64(0)), MaxMS: new(int64(0))},
	})
	if err != nil {
		t.Fatal(err)
	}
	effects := filepath.Join(t.TempDir(), "effects")
	random, killed, processes := rand.New(rand.NewPCG(1, 2)), 0, 0
	var job lessor.Job
	for ; !job.Final() && processes < 20*r.calls; processes++ {
		kill := killed < r.kills && processes%(1+r.calls/r.kills) == 2
		r.process(t, effects, []string{"kill", "stop"}[random.IntN(2)], 3+random.IntN(2), kill)
		if kill {
			killed++
		}
		if job, err = c.Job(t.Context(), sent.ID); err != nil {
			t.Fatal(err)
		}
	}
	var got agent.Result[agentOutcome]
	if err := json.Unmarshal(job.Result, &got); err != nil || got.Output == nil {
		t.Fatalf("after %d processes the job is %s: %s, %v", processes, job.State, job.Result, err)
	}
	usage := agent.Usage{InputTokens: r.calls * (r.calls + 1) / 2, OutputTokens: r.calls}
	want := agentOutcome{fmt.Sprint("answer ", r.calls), r.calls, usage}
	if *got.Output != want || job.State != lessor.Completed || killed != r.kills {
		t.Errorf("the answer is %+v, the job %s after %d kills of the server; want %+v after %d", *got.Output,
			job.State,
			killed, want, r.kills)
	}
	r.checkEffects(t, c, sent.ID, effects)
	t.Logf("%d processes, %d kills of the server, %d journal entries", processes, killed, job.JournalEntries)
}

// process runs one process of the agent until it ends, and kills the server meanwhile if asked to.
func (r agentRun) process(t *testing.T, effects, end string, steps int, kill bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), agentVariable+"=http://"+r.addr, agentCalls+"="+strconv.Itoa(r.calls),
		agentEnd+"="+end, agentSteps+"="+strconv.Itoa(steps), agentEffects+"="+effects)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if kill {
		time.Sleep(rand.N(100 * time.Millisecond))
		r.server.kill()
		r.server.start()
	}
	_ = cmd.Wait() // it may have killed itself
}

// checkEffects compares what the tools did with the recorded results.
func (r agentRun) checkEffects(t *testing.T, c *client.Client, id lessor.JobID, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ran, known := map[string]int{}, 0
	for line := range strings.Lines(string(raw)) {
		ran[strings.TrimSpace(line)]++
	}
	for e, err := range c.AllJournal(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(e.Key, "/") // agent/TURN/1/result
		if e.Kind != "agent.result" || len(parts) != 4 {
			continue
		}
		n, _ := strconv.Atoi(parts[1])
		call, tool := "call-"+parts[1], toolOf(n)
		unknown := strings.Contains(string(e.Data), "outcome unknown")
		switch {
		case tool == "careful" && (ran[call] > 1 || ran[call] == 0 && !unknown),
			tool == "repeated" && (ran[call] == 0 || unknown):
			t.Errorf("%s ran %d times, and its result is %s", call, ran[call], e.Data)
		case tool != "none" && !unknown:
			known++
		}
	}
	if known < r.calls/4 {
		t.Errorf("%d effects are known, want most of %d", known, r.calls/2)
	}
}
