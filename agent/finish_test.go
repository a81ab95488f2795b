package agent_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"lessor/agent"
	"lessor/lessortest"
	"lessor/worker"
)

// TestOutputThatTheServerRefusesIsAnError sends an output that other mailboxes accept and the mailbox of a server does
// not.
func TestOutputThatTheServerRefusesIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lessortest.Start(t)
		id := s.Submit("requests", map[string]string{"question": "work"})
		box, err := worker.NewServerMailbox(worker.ServerMailboxConfig{Client: s.Client(), Type: "requests"})
		if err != nil {
			t.Fatal(err)
		}
		loop, err := agent.NewLoop(agent.LoopConfig[map[string]string, string]{
			Requests: box, Log: slog.New(slog.DiscardHandler),
			Execute: func(context.Context, *agent.Task[map[string]string]) (string, error) {
				return strings.Repeat("x", worker.ServerMaxBody), nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := loop.Next(t.Context(), worker.MaxWait); err != nil {
			t.Fatal(err)
		}
		job := s.Job(id)
		var got agent.Result[string]
		if job.Result != nil {
			if err := json.Unmarshal(job.Result, &got); err != nil {
				t.Fatal(err)
			}
		}
		if job.State != "completed" || !strings.Contains(got.Error, "the output cannot be sent: a body of") {
			t.Errorf("the job is %s with the error %q", job.State, got.Error)
		}
	})
}
