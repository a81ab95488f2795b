package agent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"lessor/agent"
	"lessor/lessortest"
	"lessor/worker"
)

// TestDeploysOfALoopLoseNothing stops loops in the middle of a request, more often than a message may be delivered.
// The last one finishes it, at its first delivery that counts.
func TestDeploysOfALoopLoseNothing(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) worker.Mailbox{
		"in memory": func(*testing.T) worker.Mailbox { return worker.NewMemory(worker.MemoryConfig{}) },
		"on a server": func(t *testing.T) worker.Mailbox {
			box, err := worker.NewServerMailbox(worker.ServerMailboxConfig{
				Client: lessortest.Start(t).Client(),
				Type:   "requests",
			})
			if err != nil {
				t.Fatal(err)
			}
			return box
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, requests := newPost(t), open(t)
				if _, err := worker.SendJSON(t.Context(), requests, question{"work"}, nil); err != nil {
					t.Fatal(err)
				}
				for range 2 * worker.MaxDeliveries {
					// a loop that is idle for so long has lost the request
					ctx, stop := context.WithTimeout(t.Context(), time.Hour)
					l := p.loop(config{
						Requests: requests, DeadLetters: p.dead,
						Execute: func(ctx context.Context, task *agent.Task[question]) (string, error) {
							if task.Delivery != 1 {
								t.Errorf("delivery %d, want 1: a stop is not a delivery", task.Delivery)
							}
							stop()
							<-ctx.Done()
							return "", ctx.Err()
						},
					})
					if err := l.Run(ctx); err != nil {
						t.Fatal(err)
					}
				}
				done := false
				l := p.loop(config{
					Requests: requests, DeadLetters: p.dead,
					Execute: func(context.Context, *agent.Task[question]) (string, error) {
						done = true
						return "done", nil
					},
				})
				if handled, err := l.Next(t.Context(), time.Second); err != nil || !handled || !done {
					t.Errorf("after the deploys the request was handled %t, err %v", handled, err)
				}
				if letters, err := requests.DeadLetters(t.Context(), 10); err != nil || len(letters) > 0 {
					t.Errorf("dead letters %v, err %v", letters, err)
				}
				if n := p.left(p.dead); n > 0 {
					t.Errorf("%d dead letters of the loop", n)
				}
			})
		})
	}
}

// TestRequestThatKillsItsLoopBecomesADeadLetter: a process that dies returns nothing, and its delivery counts.
func TestRequestThatKillsItsLoopBecomesADeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		id := p.ask("crash")
		for range worker.MaxDeliveries {
			if got, err := p.requests.Receive(t.Context(), 1, time.Minute, 0); err != nil || len(got) != 1 {
				t.Fatalf("received %d, err %v", len(got), err)
			}
			time.Sleep(time.Minute)
		}
		if letters, err := p.requests.DeadLetters(t.Context(), 10); err != nil || len(letters) != 1 ||
			letters[0].ID != id {
			t.Errorf("dead letters %v, err %v; want %s", letters, err, id)
		}
	})
}
