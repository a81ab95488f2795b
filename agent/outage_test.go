package agent_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor/agent"
	"lessor/lessortest"
	"lessor/worker"
)

// outage is a request in the mailbox of a server that can be taken away for some time.
type outage struct {
	*post
	requests, replies worker.Mailbox
	away              func(time.Duration)
	back              chan struct{} // closed when the server is back
}

// withOutage runs a test in a bubble. The server must go away once.
func withOutage(t *testing.T, test func(o outage)) {
	synctest.Test(t, func(t *testing.T) {
		s := lessortest.Start(t)
		open := func(jobType string) worker.Mailbox {
			box, err := worker.NewServerMailbox(worker.ServerMailboxConfig{Client: s.Client(), Type: jobType})
			if err != nil {
				t.Fatal(err)
			}
			return box
		}
		back := make(chan struct{})
		away := func(d time.Duration) {
			go func() {
				defer close(back)
				s.Restart(d)
			}()
			time.Sleep(100 * time.Millisecond)
		}
		o := outage{newPost(t), open("requests"), open("replies"), away, back}
		if _, err := worker.SendJSON(t.Context(), o.requests, question{"work"}, o.replies); err != nil {
			t.Fatal(err)
		}
		defer func() { <-back }()
		test(o)
	})
}

// receive returns what is in a mailbox when the server is back.
func (o outage) receive(box worker.Mailbox) []worker.Message {
	o.Helper()
	<-o.back
	got, err := box.Receive(o.Context(), worker.MaxBatch, time.Minute, 0)
	if err != nil {
		o.Fatal(err)
	}
	return got
}

func TestReplyWaitsForAServer(t *testing.T) {
	withOutage(t, func(o outage) {
		l := o.loop(config{
			Requests: o.requests,
			Execute: func(context.Context, *agent.Task[question]) (string, error) {
				o.away(20 * time.Second)
				return "done", nil
			},
		})
		if _, err := l.Next(o.Context(), worker.MaxWait); err != nil {
			o.Fatal(err)
		}
		got := o.receive(o.replies)
		if len(got) != 1 || !strings.Contains(string(got[0].Body()), `"output":"done"`) {
			o.Errorf("%d replies, want the output once; the log:\n%s", len(got), o.log.String())
		}
		time.Sleep(time.Hour)
		if got := o.receive(o.requests); len(got) != 0 {
			o.Errorf("the request is delivered again (delivery %d)", got[0].Deliveries())
		}
	})
}

// TestStopWaitsForAServer replaces server and loop at once: the request is given back, and the delivery does not count.
func TestStopWaitsForAServer(t *testing.T) {
	withOutage(t, func(o outage) {
		ctx, stop := context.WithCancel(o.Context())
		l := o.loop(config{
			Requests: o.requests,
			Execute: func(ctx context.Context, _ *agent.Task[question]) (string, error) {
				o.away(3 * time.Second)
				stop()
				return "", ctx.Err()
			},
		})
		if err := l.Run(ctx); err != nil {
			o.Fatal(err)
		}
		if got := o.receive(o.requests); len(got) != 1 || got[0].Deliveries() != 1 {
			o.Errorf("%d messages, want the request as delivery 1; the log:\n%s", len(got), o.log.String())
		}
	})
}

// TestStopDoesNotWaitLongForAServer stops a loop before and after it has something to reply.
func TestStopDoesNotWaitLongForAServer(t *testing.T) {
	for name, early := range map[string]bool{"stopped at work": true, "stopped when the work is done": false} {
		t.Run(name, func(t *testing.T) {
			withOutage(t, func(o outage) {
				ctx, stop := context.WithCancel(o.Context())
				var stopped time.Time
				l := o.loop(config{
					Requests: o.requests,
					Execute: func(context.Context, *agent.Task[question]) (string, error) {
						o.away(5 * time.Minute)
						halt := func() {
							stopped = time.Now()
							stop()
						}
						if early {
							halt()
						} else {
							time.AfterFunc(5*time.Second, halt)
						}
						return "done", nil
					},
				})
				if err := l.Run(ctx); err != nil {
					o.Fatal(err)
				}
				if took := time.Since(stopped); took > 11*time.Second {
					o.Errorf("the stop took %s, want 10 s at most", took)
				}
			})
		})
	}
}
