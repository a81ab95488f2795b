package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor/agent"
	"lessor/worker"
)

type (
	question struct {
		Text string `json:"text"`
	}
	config  = agent.LoopConfig[question, string]
	execute = func(ctx context.Context, t *agent.Task[question]) (string, error)
)

// post is the mailboxes of one test, and a loop between them.
type post struct {
	*testing.T
	requests, replies, dead *worker.Memory
	log                     bytes.Buffer
}

func newPost(t *testing.T) *post {
	return &post{
		T: t, requests: worker.NewMemory(worker.MemoryConfig{}), replies: worker.NewMemory(worker.MemoryConfig{}),
		dead: worker.NewMemory(worker.MemoryConfig{}),
	}
}

func (p *post) loop(cfg config) *agent.Loop[question, string] {
	p.Helper()
	if cfg.Requests == nil {
		cfg.Requests = p.requests
	}
	cfg.Log = slog.New(slog.NewTextHandler(&p.log, nil))
	l, err := agent.NewLoop(cfg)
	if err != nil {
		p.Fatal(err)
	}
	return l
}

func (p *post) ask(text string) (id string) {
	p.Helper()
	id, err := worker.SendJSON(p.Context(), p.requests, question{text}, p.replies)
	if err != nil {
		p.Fatal(err)
	}
	return id
}

// next handles one request that must be there.
func (p *post) next(l *agent.Loop[question, string]) {
	p.Helper()
	if handled, err := l.Next(p.Context(), 0); err != nil || !handled {
		p.Fatalf("handled %t, err %v", handled, err)
	}
}

// left returns how many messages of the mailbox can be received.
func (p *post) left(box worker.Mailbox) int {
	p.Helper()
	got, err := box.Receive(p.Context(), worker.MaxBatch, 0, 0)
	if err != nil {
		p.Fatal(err)
	}
	return len(got)
}

// answers takes the replies so far.
func (p *post) answers() (all []string) {
	p.Helper()
	got, err := p.replies.Receive(p.Context(), worker.MaxBatch, time.Hour, 0)
	if err != nil {
		p.Fatal(err)
	}
	for _, m := range got {
		all = append(all, string(m.Body()))
		if err := m.Acknowledge(p.Context()); err != nil {
			p.Fatal(err)
		}
	}
	return all
}

func (p *post) wantAnswers(want ...string) {
	p.Helper()
	if diff := cmp.Diff(want, p.answers()); diff != "" {
		p.Errorf("replies (-want +got):\n%s", diff)
	}
}

func TestLoopRepliesAndAcknowledges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		id := p.ask("hello")
		l := p.loop(config{Execute: func(_ context.Context, task *agent.Task[question]) (string, error) {
			if task.ID != id || task.Delivery != 1 {
				t.Errorf("task %+v", task)
			}
			return strings.ToUpper(task.Request.Text), nil
		}})
		p.next(l)
		p.wantAnswers(`{"request_id":"` + id + `","output":"HELLO"}`)
		time.Sleep(time.Hour)
		if handled, err := l.Next(t.Context(), 0); handled || err != nil {
			t.Errorf("handled again: %t, err %v", handled, err)
		}
	})
}

func TestMainLoopExtendsDuringToolExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		p.ask("build it")
		e := executor(t, tool("build", func(_ context.Context, tc *agent.ToolContext) (string, error) {
			for range 100 {
				time.Sleep(time.Second)
				tc.Beat()
				if p.left(p.requests) > 0 {
					t.Fatal("the message of an agent that works went to another")
				}
			}
			return "built", nil
		}))
		in := &agent.Inner{Adapter: agent.Script(agent.Use("build", "{}"), agent.Say("It is built.")), Executor: e}
		l := p.loop(config{
			Execute: agent.Ask[question, string](in,
				func(q question) []agent.Turn { return []agent.Turn{{Role: agent.User, Text: q.Text}} }),
			Visibility: 2 * time.Second, Extender: worker.LeaseExtenderConfig{
				Interval:  100 * time.Millisecond,
				Extension: 2 * time.Second,
			},
		})
		p.next(l)
		if got := countsOf(t, e, "build").Extensions; got != 100 {
			t.Errorf("%d extensions during the tool, want one a beat", got)
		}
		if got := p.answers(); len(got) != 1 || !strings.Contains(got[0], "It is built.") {
			t.Errorf("replies %q", got)
		}
	})
}

func TestHungAgentLosesItsMessageAndItsReplyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		p.ask("work")
		wake := make(chan struct{})
		hung := p.loop(config{Execute: func(context.Context, *agent.Task[question]) (string, error) {
			<-wake
			return "late", nil
		}})
		healthy := p.loop(config{Execute: func(_ context.Context, task *agent.Task[question]) (string, error) {
			if task.Delivery != 2 {
				t.Errorf("delivery %d, want the second", task.Delivery)
			}
			return "in time", nil
		}})
		done := make(chan struct{})
		go func() { defer close(done); p.next(hung) }()
		synctest.Wait()
		time.Sleep(5 * time.Minute)
		p.next(healthy)
		close(wake)
		<-done
		if got := p.answers(); len(got) != 1 || !strings.Contains(got[0], "in time") {
			t.Errorf("replies %q, want that of the healthy agent alone", got)
		}
		if !strings.Contains(p.log.String(), "receipt handle expired") {
			t.Errorf("logged %q", p.log.String())
		}
	})
}

// dirError is an error whose nil pointer has no text.
type dirError struct{ dir string }

func (e *dirError) Error() string { return e.dir + " is full" }

func TestErrorIsRepliedAndAcknowledged(t *testing.T) {
	for name, c := range map[string]struct {
		do   execute
		want string
	}{
		"error": {
			func(context.Context, *agent.Task[question]) (string, error) { return "x", errors.New("no model") },
			"no model",
		},
		"panic": {
			func(context.Context, *agent.Task[question]) (string, error) { panic("nil map") },
			"the work panicked: nil map",
		},
		"error whose text panics": {
			func(context.Context, *agent.Task[question]) (string, error) { return "", (*dirError)(nil) },
			"the work panicked: runtime error: invalid memory address or nil pointer dereference",
		},
		"deadline": {func(ctx context.Context, _ *agent.Task[question]) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}, "deadline has passed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPost(t)
				l := p.loop(config{Execute: c.do, Visibility: 2 * time.Hour})
				for range 2 { // the second shows that the first was detached
					id := p.ask("work")
					p.next(l)
					p.wantAnswers(`{"request_id":"` + id + `","output":null,"error":"` + c.want + `"}`)
				}
				time.Sleep(3 * time.Hour)
				if n := p.left(p.requests); n != 0 {
					t.Errorf("%d requests were not acknowledged", n)
				}
			})
		})
	}
}

func TestWithDeadLettersAnErrorIsTriedAgainLaterEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		id := p.ask("work")
		began := time.Now()
		var at []time.Duration
		l := p.loop(config{DeadLetters: p.dead, Execute: func(context.Context, *agent.Task[question]) (string, error) {
			at = append(at, time.Since(began))
			return "", errors.New("no model")
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
		want := []time.Duration{0, time.Minute, 3 * time.Minute, 6 * time.Minute, 10 * time.Minute}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("tried at (-want +got):\n%s", diff)
		}
		p.wantAnswers(`{"request_id":"` + id + `","output":null,"error":"no model"}`)
		letters, err := p.dead.Receive(t.Context(), 10, time.Hour, 0)
		if err != nil || len(letters) != 1 {
			t.Fatalf("%d dead letters, err %v", len(letters), err)
		}
		got, err := worker.DecodeBody[agent.DeadLetter](letters[0])
		if diff := cmp.Diff(agent.DeadLetter{
			RequestID: id, Request: json.RawMessage(`{"text":"work"}`), Deliveries: 5,
			Error: "no model",
		}, got); err != nil || diff != "" {
			t.Errorf("dead letter, err %v (-want +got):\n%s", err, diff)
		}
		if n := p.left(p.requests); n != 0 {
			t.Errorf("%d requests are left", n)
		}
	})
}

func TestDelayBeforeTheNextTryIsBounded(t *testing.T) {
	for deliveries, want := range map[int]time.Duration{
		1: time.Minute, 4: 4 * time.Minute, 15: 15 * time.Minute,
		90: 15 * time.Minute,
	} {
		if got := agent.DelayAfter(deliveries); got != want {
			t.Errorf("after %d deliveries %s, want %s", deliveries, got, want)
		}
	}
}

func TestRequestThatCannotBeReadIsAnError(t *testing.T) {
	p := newPost(t)
	if _, err := p.requests.Send(t.Context(), []byte("not JSON"), p.replies); err != nil {
		t.Fatal(err)
	}
	p.next(p.loop(config{Execute: func(context.Context, *agent.Task[question]) (string, error) {
		t.Error("executed")
		return "", nil
	}}))
	if got := p.answers(); len(got) != 1 || !strings.Contains(got[0], `"error":"decode message`) {
		t.Errorf("replies %q", got)
	}
}

func TestDeadLetterKeepsABodyThatIsNoJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		if _, err := p.requests.Send(t.Context(), []byte("not JSON"), nil); err != nil {
			t.Fatal(err)
		}
		l := p.loop(config{DeadLetters: p.dead, Execute: func(context.Context, *agent.Task[question]) (string, error) {
			return "", nil
		}})
		for range 5 {
			p.next(l)
			time.Sleep(15 * time.Minute)
		}
		letters, err := p.dead.Receive(t.Context(), 1, 0, 0)
		if err != nil || len(letters) != 1 {
			t.Fatalf("%d dead letters, err %v", len(letters), err)
		}
		if got, err := worker.DecodeBody[agent.DeadLetter](letters[0]); err != nil || string(got.Body) != "not JSON" ||
			got.Request != nil {
			t.Errorf("dead letter %+v, err %v", got, err)
		}
	})
}

func TestDeadLettersThatCannotBeSentStayInTheMailbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		id := p.ask("work")
		p.dead.Close()
		l := p.loop(config{DeadLetters: p.dead, Execute: func(context.Context, *agent.Task[question]) (string, error) {
			return "", errors.New("no")
		}})
		for range 4 {
			p.next(l)
			time.Sleep(15 * time.Minute)
		}
		p.next(l)
		kept, err := p.requests.DeadLetters(t.Context(), 10)
		if err != nil || len(kept) != 1 || kept[0].ID != id {
			t.Errorf("the mailbox keeps %v, err %v", kept, err)
		}
	})
}

func TestReplyThatCannotBeSentIsNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		p.ask("work")
		p.replies.Close()
		p.next(p.loop(config{Execute: func(context.Context, *agent.Task[question]) (string, error) {
			return "done",
				nil
		}}))
		time.Sleep(time.Minute)
		if n := p.left(p.requests); n != 1 {
			t.Errorf("%d requests are left, want the one without a reply", n)
		}
	})
}

func TestOutputThatCannotBeSentIsAnError(t *testing.T) {
	p := newPost(t)
	p.ask("work")
	p.next(p.loop(config{Execute: func(context.Context, *agent.Task[question]) (string, error) {
		return strings.Repeat("x", worker.MaxBody), nil
	}}))
	if got := p.answers(); len(got) != 1 || !strings.Contains(got[0], "the output cannot be sent: a body of") {
		t.Errorf("replies %.200q", got)
	}
}

type badOutput struct{}

func (badOutput) MarshalJSON() ([]byte, error) { panic("no output") }

func TestOutputWhoseEncodingPanicsIsAnError(t *testing.T) {
	p := newPost(t)
	id := p.ask("work")
	l, err := agent.NewLoop(agent.LoopConfig[question, badOutput]{
		Requests: p.requests, Log: slog.New(slog.NewTextHandler(&p.log, nil)),
		Execute: func(context.Context, *agent.Task[question]) (badOutput, error) { return badOutput{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if handled, err := l.Next(t.Context(), 0); err != nil || !handled {
		t.Fatalf("handled %t, err %v", handled, err)
	}
	p.wantAnswers(`{"request_id":"` + id + `","output":null,"error":` +
		`"the output cannot be sent: encode reply: the output panicked: no output"}`)
	if log := p.log.String(); !strings.Contains(log, "badOutput.MarshalJSON") {
		t.Errorf("the log has no stack of the panic: %s", log)
	}
}

func TestRequestWithoutReplyToIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		if _, err := worker.SendJSON(t.Context(), p.requests, question{}, nil); err != nil {
			t.Fatal(err)
		}
		p.next(p.loop(config{Execute: func(context.Context, *agent.Task[question]) (string, error) {
			return "done",
				nil
		}}))
		time.Sleep(time.Hour)
		if n := p.left(p.requests); n != 0 || p.log.Len() > 0 {
			t.Errorf("%d requests are left, logged %q", n, p.log.String())
		}
	})
}

func TestStoppedLoopGivesItsRequestsBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		for range 3 {
			p.ask("work")
		}
		var running sync.WaitGroup
		running.Add(3)
		l := p.loop(config{
			Concurrency: 3, DeadLetters: p.dead,
			Execute: func(ctx context.Context, _ *agent.Task[question]) (string, error) {
				running.Done()
				<-ctx.Done()
				return "", ctx.Err()
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		running.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := p.left(p.requests); n != 3 {
			t.Errorf("%d requests can be received at once, want 3", n)
		}
		if got := p.answers(); len(got) != 0 {
			t.Errorf("replies %q to requests that nobody finished", got)
		}
		if p.log.Len() > 0 {
			t.Errorf("a clean stop is logged: %s", p.log.String())
		}
	})
}

func TestLoopEndsWhenTheMailboxIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		l := p.loop(config{Execute: func(context.Context, *agent.Task[question]) (string, error) { return "", nil }})
		time.AfterFunc(time.Minute, func() { p.requests.Close() })
		if err := l.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
