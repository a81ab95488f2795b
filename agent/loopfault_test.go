package agent_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lessor/agent"
	"lessor/worker"
)

// flaky is a mailbox that cannot be read at first.
type flaky struct {
	*worker.Memory
	failures int
}

func (f *flaky) Receive(ctx context.Context, n int, visibility, wait time.Duration) ([]worker.Message, error) {
	if f.failures > 0 {
		f.failures--
		return nil, errors.New("connection refused")
	}
	return f.Memory.Receive(ctx, n, visibility, wait)
}

func TestLoopOutlivesAMailboxThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		p.ask("work")
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		l := p.loop(config{
			Requests: &flaky{p.requests, 5},
			Execute: func(context.Context, *agent.Task[question]) (string, error) {
				cancel()
				return "done", nil
			},
		})
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
		// between half of 1+2+4+8+16 s and the whole
		if took := time.Since(began); took < 15*time.Second || took > 31*time.Second {
			t.Errorf("five failures took %s", took)
		}
		if got := p.answers(); len(got) != 1 {
			t.Errorf("replies %q", got)
		}
	})
}

func TestHeartbeatsOfAnIdleLoopBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		hang := make(chan struct{})
		l := p.loop(config{Concurrency: 2, Execute: func(context.Context, *agent.Task[question]) (string, error) {
			<-hang
			return "", nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		var stalls atomic.Int64
		dog := worker.Watchdog{
			Heartbeats: l.Heartbeats(), StallAfter: 30 * time.Second, CheckEvery: time.Second,
			Stalled: func(*worker.Heartbeat, time.Duration) { stalls.Add(1) },
		}
		watched := make(chan error)
		go func() { watched <- dog.Run(ctx) }()
		time.Sleep(time.Hour)
		if n := stalls.Load(); n != 0 || len(l.Heartbeats()) != 2 {
			t.Errorf("%d stalls of a loop that has nothing to do", n)
		}
		p.ask("hang")
		time.Sleep(time.Minute)
		if n := stalls.Load(); n != 1 {
			t.Errorf("%d stalls of a loop that hangs in one of two places", n)
		}
		cancel()
		close(hang)
		if err := errors.Join(<-done, <-watched); err != nil {
			t.Error(err)
		}
	})
}

func TestBadLoopsAreRefused(t *testing.T) {
	box := worker.NewMemory(worker.MemoryConfig{})
	do := func(context.Context, *agent.Task[question]) (string, error) { return "", nil }
	for name, cfg := range map[string]config{
		"no mailbox":       {Execute: do},
		"nothing to do":    {Requests: box},
		"long visibility":  {Requests: box, Execute: do, Visibility: 13 * time.Hour},
		"negative":         {Requests: box, Execute: do, Concurrency: -1},
		"huge concurrency": {Requests: box, Execute: do, Concurrency: 1001},
	} {
		if _, err := agent.NewLoop(cfg); err == nil {
			t.Errorf("%s: accepted, want a refusal", name)
		}
	}
}
