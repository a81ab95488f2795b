package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor/agent"
	"lessor/lessortest"
	"lessor/worker"
)

// TestPersonDecidesAboutAnUncertainCall cuts a tool off, twice if it is called again, and restarts the server between
// the question and the answer.
func TestPersonDecidesAboutAnUncertainCall(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []string // none = nobody answers in time
		effects int
		result  string
	}{
		{"again", []string{agent.AnswerAgain, agent.AnswerAgain}, 3, "paid in attempt 3"},
		{"unknown", []string{agent.AnswerUnknown}, 1, "outcome unknown"},
		{"a result", []string{"paid by hand"}, 1, "paid by hand"},
		{"again, and then a result", []string{agent.AnswerAgain, "paid by hand"}, 2, "paid by hand"},
		{"nothing", nil, 1, "outcome unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { decide(t, c.answers, c.effects, c.result) })
		})
	}
}

func decide(t *testing.T, answers []string, wantEffects int, wantResult string) {
	s := lessortest.Start(t)
	effects, name := 0, ""
	type order struct{ Sum int }
	pay := agent.NewTool("pay", "", "", func(ctx context.Context, _ *agent.ToolContext, _ order) (string, error) {
		if effects++; effects > 2 {
			return fmt.Sprint("paid in attempt ", effects), nil
		}
		s.KillWorker(name)
		<-ctx.Done()
		return "", ctx.Err()
	})
	executor, err := agent.NewExecutor(agent.ExecutorConfig{Tools: []agent.Tool{pay}})
	if err != nil {
		t.Fatal(err)
	}
	model := agent.Script(agent.Step{Reply: agent.Reply{
		Calls: []agent.ToolCall{{ID: "1", Name: "pay", Arguments: []byte(`{"sum": 7}`)}},
	}}, agent.Say("end"))
	handle := func(ctx context.Context, job *worker.Job[struct{}]) (any, error) {
		inner := &agent.Inner{Adapter: model, Executor: executor, Uncertain: agent.AskPerson(job.Ask, time.Hour)}
		r, err := inner.Run(ctx, []agent.Turn{{Role: agent.User, Text: "pay"}}, agent.Vitals{Journal: job.Journal()})
		if err != nil {
			return nil, err
		}
		return r.Turns[2].Text, nil
	}
	id := s.Submit("pay", struct{}{})
	for n := 0; s.Job(id).State != "completed" && n < 10; n++ {
		name = fmt.Sprint("w-", n)
		w, err := worker.New(worker.Config{Client: s.Client(), ID: name, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		worker.Handle(w, "pay", handle)
		stop := s.Run(w)
		s.Advance(10 * time.Minute)
		stop()
		if s.Job(id).State != "waiting" {
			continue
		}
		s.Restart(time.Second)
		if len(answers) == 0 {
			s.Advance(2 * time.Hour)
			continue
		}
		if q := s.Job(id).Question.Text; !strings.Contains(q, `{"sum": 7}`) || !strings.Contains(q, "pay") {
			t.Errorf("the question is %q", q)
		}
		s.Answer(id, answers[0])
		answers = answers[1:]
	}
	j := s.Job(id)
	if effects != wantEffects || j.State != "completed" || !strings.Contains(string(j.Result), wantResult) {
		t.Errorf("%d effects, and the job is %s with %s; want %d and %q", effects, j.State, j.Result, wantEffects,
			wantResult)
	}
	if n := len(model.Questions()); n != 2 {
		t.Errorf("the model was asked %d times, want 2", n)
	}
}
