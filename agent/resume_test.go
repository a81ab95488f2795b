package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor/agent"
	"lessor/lessortest"
	"lessor/worker"
)

// longRun is an agent of many model calls. Every second answer calls a tool; every second tool is idempotent.
type longRun struct {
	calls   int
	effects map[string]int // of tools, by call id
	asked   int            // model calls that were made
	at      func()         // is called before and after each model call and each effect
}

// Complete implements agent.Adapter. The answer depends on the place in the conversation alone.
func (l *longRun) Complete(ctx context.Context, q agent.Question) (agent.Reply, error) {
	n := 1
	for _, t := range q.Turns {
		if t.Role == agent.Assistant {
			n++
		}
	}
	l.at()
	l.asked++
	l.at()
	reply := agent.Reply{Text: fmt.Sprint("answer ", n), Usage: agent.Usage{InputTokens: n, OutputTokens: 1}}
	switch {
	case n == l.calls:
	case n%2 == 0:
		reply.Calls = []agent.ToolCall{{ID: fmt.Sprint("a-", n), Name: []string{"careful", "again"}[n/2%2]}}
	default:
		reply.Calls = []agent.ToolCall{{ID: fmt.Sprint("x-", n), Name: "none"}} // there is no such tool
	}
	return reply, ctx.Err()
}

func (l *longRun) inner(t *testing.T) *agent.Inner {
	t.Helper()
	effect := func(_ context.Context, c *agent.ToolContext, _ struct{}) (string, error) {
		l.at()
		l.effects[c.CallID]++
		l.at()
		return "did " + c.CallID, nil
	}
	careful, again := agent.NewTool("careful", "", "", effect), agent.NewTool("again", "", "", effect)
	again.Idempotent = true
	executor, err := agent.NewExecutor(agent.ExecutorConfig{Tools: []agent.Tool{careful, again}})
	if err != nil {
		t.Fatal(err)
	}
	return &agent.Inner{Adapter: l, Executor: executor, Budget: agent.Budget{
		Calls: l.calls, Tokens: 1 << 30, InputPrice: 1, OutputPrice: 2,
	}}
}

// outcome is the answer of a run.
type outcome struct {
	Text  string
	Calls int
	Usage agent.Usage
	Cost  float64
}

// process handles one delivery of the request as a program would, until it ends or at has ended it.
func (l *longRun) process(ctx context.Context, t *testing.T, box worker.Mailbox) {
	t.Helper()
	inner := l.inner(t)
	loop, err := agent.NewLoop(agent.LoopConfig[map[string]string, outcome]{
		Requests: box, Visibility: time.Minute, Log: slog.New(slog.DiscardHandler),
		Execute: func(ctx context.Context, task *agent.Task[map[string]string]) (outcome, error) {
			turns := []agent.Turn{{Role: agent.User, Text: fmt.Sprint("It is ", time.Now())}} // never the same
			r, err := inner.Run(ctx, turns, task.Vitals)
			return outcome{r.Text, r.Calls, r.Usage, r.Cost}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loop.Next(ctx, worker.MaxWait); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
}

// TestRunContinuesAfterEveryStop stops or kills the worker at every step of 200 model calls and 100 tools, and restarts
// the server 20 times: the answer and the budget are those of a run without faults, and no tool runs twice unless it
// may.
func TestRunContinuesAfterEveryStop(t *testing.T) {
	const calls = 200
	synctest.Test(t, func(t *testing.T) {
		s := lessortest.Start(t)
		random := rand.New(rand.NewPCG(7, 7))
		l := &longRun{calls: calls, effects: map[string]int{}}
		id := s.Submit("requests", map[string]string{"question": "work"})
		processes, restarts := 0, 0
		final := func() bool { job := s.Job(id); return job.Final() }
		for ; !final() && processes < 5000; processes++ {
			name := fmt.Sprint("process-", processes)
			box, err := worker.NewServerMailbox(worker.ServerMailboxConfig{
				Client: s.Client(), Type: "requests", ID: name,
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			left := 3 + random.IntN(2) // it may take one step, and ends before or after the next
			l.at = func() {
				if left--; left != 0 {
					return
				}
				if random.IntN(2) == 0 {
					s.KillWorker(name)
				}
				stop()
			}
			l.process(ctx, t, box)
			stop()
			s.Advance(6 * time.Minute) // the lease of a process that was killed expires
			if processes%10 == 0 && restarts < 20 {
				restarts++
				s.Restart(time.Second)
			}
		}
		job := s.Job(id)
		var got agent.Result[outcome]
		if err := json.Unmarshal(job.Result, &got); err != nil || got.Output == nil {
			t.Fatalf("after %d processes the job is %s: %s, %v", processes, job.State, job.Result, err)
		}
		in := calls * (calls + 1) / 2
		want := outcome{
			"answer 200", calls,
			agent.Usage{InputTokens: in, OutputTokens: calls},
			float64(in+2*calls) / 1e6,
		}
		if *got.Output != want || job.State != "completed" {
			t.Errorf("the answer is %+v, the job %s; want %+v", *got.Output, job.State, want)
		}
		if processes < calls || restarts < 10 {
			t.Errorf("%d processes and %d restarts are too few for the test to mean something", processes, restarts)
		}
		results := map[string]string{}
		for _, e := range s.Journal(id) {
			if e.Kind == "agent.result" {
				results[strings.TrimSuffix(e.Key, "/result")] = string(e.Data)
			}
		}
		l.check(t, results)
		t.Logf("%d processes, %d restarts, %d model calls for %d answers", processes, restarts, l.asked, calls)
	})
}

// check compares the effects of tools with their results in the journal.
func (l *longRun) check(t *testing.T, results map[string]string) {
	t.Helper()
	known := 0
	for n := 2; n < l.calls; n += 2 {
		id, result := fmt.Sprint("a-", n), results[fmt.Sprintf("agent/%d/1", n)]
		ran := l.effects[id]
		unknown := strings.Contains(result, "outcome unknown")
		switch idempotent := n/2%2 == 1; {
		case idempotent && (ran < 1 || unknown):
			t.Errorf("call %s of a tool that may be repeated ran %d times: %s", id, ran, result)
		case !idempotent && (ran > 1 || ran < 1 && !unknown):
			t.Errorf("call %s of a tool that must not be repeated ran %d times: %s", id, ran, result)
		case !unknown && !strings.Contains(result, "did "+id):
			t.Errorf("the result of %s is %s", id, result)
		case !unknown:
			known++
		}
	}
	if want := (l.calls - 1) / 2; known < want/2 || len(results) != l.calls-1 {
		t.Errorf("%d of %d effects are known, of %d results; want at least half of them", known, want, len(results))
	}
}

// TestUncertainDecidesTheResultOfAnInterruptedCall: the answer of Uncertain is the result of the call; its error leaves
// the call uncertain.
func TestUncertainDecidesTheResultOfAnInterruptedCall(t *testing.T) {
	job := &worker.Job[question]{}
	journal := job.Journal()
	l := &longRun{calls: 5, effects: map[string]int{}}
	l.at = func() {}
	inner := l.inner(t)
	run := func(uncertain error) (agent.Response, error) {
		inner.Uncertain = func(_ context.Context, call agent.UncertainCall) (string, error) {
			return "ask " + call.ID, uncertain
		}
		again := &worker.Job[question]{} // another attempt with the same entries
		entries, err := journal.Entries(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if err := again.Journal().Append(t.Context(), e.Key, e.Kind, e.Data); err != nil {
				t.Fatal(err)
			}
		}
		journal = again.Journal()
		return inner.Run(t.Context(), []agent.Turn{{Role: agent.User, Text: "begin"}}, agent.Vitals{Journal: journal})
	}
	if err := journal.Append(t.Context(), "agent/4/1/call", "agent.call", map[string]any{"value": map[string]string{
		"id": "a-4",
	}}); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("nobody knows")
	if _, err := run(broken); !errors.Is(err, broken) {
		t.Fatalf("the run ended with %v, want the error of Uncertain", err)
	}
	r, err := run(nil)
	if err != nil || r.Text != "answer 5" || l.effects["a-4"] != 0 || l.asked != 5 {
		t.Fatalf("the run: %+v, %v, effects %v, %d model calls; want 5 and no effect of a-4", r, err, l.effects,
			l.asked)
	}
	found := false
	for _, turn := range r.Turns {
		found = found || turn.CallID == "a-4" && turn.Text == "ask a-4"
	}
	if !found {
		t.Errorf("the model did not get the answer of Uncertain: %v", r.Turns)
	}
}

// TestToolThatEndsDuringAStop: what a tool has done is recorded although the run was stopped meanwhile. A tool that
// gave up because of the stop may have done its work or not.
func TestToolThatEndsDuringAStop(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails bool
		want  string // what the model is told in the next attempt
	}{
		{"completes its work", false, "did it"},
		{"gives up", true, "error: outcome unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := lessortest.Start(t)
				s.Submit("requests", question{"work"})
				act := agent.Reply{Calls: []agent.ToolCall{{Name: "act"}}}
				model := agent.Script(agent.Step{Reply: act}, agent.Say("end"))
				ctx, stop := context.WithCancel(t.Context())
				calls := 0
				inner := &agent.Inner{
					Adapter: model,
					Executor: executor(t, tool("act", func(ctx context.Context, _ *agent.ToolContext) (string, error) {
						calls++
						stop()
						if c.fails {
							return "", ctx.Err()
						}
						return "did it", nil
					})),
				}
				box, err := worker.NewServerMailbox(worker.ServerMailboxConfig{Client: s.Client(), Type: "requests"})
				if err != nil {
					t.Fatal(err)
				}
				attempt := func(ctx context.Context) error {
					got, err := box.Receive(t.Context(), 1, time.Minute, time.Second)
					if err != nil || len(got) != 1 {
						t.Fatalf("received %v, %v", got, err)
					}
					m, _ := got[0].(worker.Journaled)
					_, err = inner.Run(ctx, greeting, agent.Vitals{Journal: m.Journal()})
					return errors.Join(err, m.Return(t.Context()))
				}
				if err := attempt(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("the stopped run ended with %v, want %v", err, context.Canceled)
				}
				if err := attempt(t.Context()); err != nil {
					t.Fatal(err)
				}
				questions := model.Questions()
				last := questions[len(questions)-1].Turns
				if told := last[len(last)-1].Text; calls != 1 || !strings.HasPrefix(told, c.want) {
					t.Errorf("after %d calls the model is told %q, want %q after one call", calls, told, c.want)
				}
			})
		})
	}
}

// TestLargeAnswersAreRecorded: an answer that is larger than an entry may be comes back whole.
func TestLargeAnswersAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lessortest.Start(t)
		id := s.Submit("requests", question{"work"})
		long := strings.Repeat("€\x00\"", 100_000)
		model := agent.Script(agent.Step{Reply: agent.Reply{
			Text: long, Calls: []agent.ToolCall{{ID: "1", Name: "none", Arguments: json.RawMessage("{bad")}},
		}}, agent.Say("end"))
		executor, err := agent.NewExecutor(agent.ExecutorConfig{})
		if err != nil {
			t.Fatal(err)
		}
		inner := &agent.Inner{Adapter: model, Executor: executor}
		var runs []agent.Response
		for range 2 {
			box, err := worker.NewServerMailbox(worker.ServerMailboxConfig{Client: s.Client(), Type: "requests"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := box.Receive(t.Context(), 1, time.Minute, time.Second)
			if err != nil || len(got) != 1 {
				t.Fatalf("received %v, %v", got, err)
			}
			m, _ := got[0].(worker.Journaled)
			r, err := inner.Run(t.Context(), []agent.Turn{{Role: agent.User, Text: long}},
				agent.Vitals{Journal: m.Journal()})
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, r)
			if err := m.Return(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(model.Questions()) != 2 || runs[1].Turns[1].Text != long || runs[1].Turns[0].Text != long ||
			string(runs[1].Turns[1].Calls[0].Arguments) != "{bad" || runs[1].Text != "end" {
			t.Errorf("%d questions; the second run is not the first: %d turns", len(model.Questions()),
				len(runs[1].Turns))
		}
		if n := len(s.Journal(id)); n < 10 {
			t.Errorf("the journal has %d entries, want the parts of the answer", n)
		}
	})
}

// TestMailboxWithoutAJournalSaysSoOnce: a request that comes again starts from the beginning, and the log says
// why, once.
func TestMailboxWithoutAJournalSaysSoOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		var log strings.Builder
		runs := 0
		l, err := agent.NewLoop(config{
			Requests: p.requests, DeadLetters: p.dead, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Execute: func(context.Context, *agent.Task[question]) (string, error) {
				runs++
				return "", errors.New("again")
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		p.ask("work")
		for range 3 {
			if _, err := l.Next(t.Context(), worker.MaxWait); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
		}
		if n := strings.Count(log.String(), "keeps no journal"); n != 1 || runs != 3 {
			t.Errorf("the log said %d times in %d runs that there is no journal, want once in 3:\n%s", n, runs,
				log.String())
		}
	})
}
