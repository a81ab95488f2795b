package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"lessor/internal/pause"
	"lessor/worker"
)

// The defaults of a Loop.
const (
	// DefaultVisibility is how long a message is hidden before its first beat: one extension.
	DefaultVisibility = worker.DefaultExtension
	// DefaultDeadline bounds the work on one delivery.
	DefaultDeadline = time.Hour
)

// maxConcurrency bounds the concurrent requests of one loop.
const maxConcurrency = 1000

// The pauses after a failed Receive.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// Task is one delivery of a request.
type Task[Req any] struct {
	// ID is the id of the message, the same at every delivery.
	ID string
	// Delivery counts from 1.
	Delivery int
	Request  Req
	// Vitals are for Inner.Run, and for work that beats by itself.
	Vitals
}

// LoopConfig configures a Loop. Requests and Execute are required.
type LoopConfig[Req, Out any] struct {
	// Requests is the mailbox of requests. Each message is a Req as JSON.
	Requests worker.Mailbox
	// Execute does the work of one request. Ask returns an Execute that prompts a model.
	Execute func(ctx context.Context, t *Task[Req]) (Out, error)
	// DeadLetters receives a DeadLetter for each request whose last delivery failed. If it is nil, the first error is
	// the reply, and the request is not tried again.
	DeadLetters worker.Mailbox
	// Visibility is how long a message is hidden before its first beat. The default is DefaultVisibility.
	Visibility time.Duration
	// Deadline bounds the work on one delivery. The default is DefaultDeadline.
	Deadline time.Duration
	// Concurrency is how many requests are processed at once. The default is 1.
	Concurrency int
	// Extender configures how beats extend the lease of a message.
	Extender worker.LeaseExtenderConfig
	// Log receives errors that the sender of a request does not see. The default is slog.Default.
	Log *slog.Logger
}

// Loop receives requests, executes each while its beats extend the message, replies, and acknowledges.
type Loop[Req, Out any] struct {
	cfg       LoopConfig[Req, Out]
	places    []Vitals // one for each request at a time
	noJournal sync.Once
}

// NewLoop checks cfg and returns a Loop. Nothing runs until Run.
func NewLoop[Req, Out any](cfg LoopConfig[Req, Out]) (*Loop[Req, Out], error) {
	if cfg.Requests == nil || cfg.Execute == nil {
		return nil, errors.New("a loop needs a mailbox of requests and something to execute")
	}
	if cfg.Concurrency < 0 || cfg.Concurrency > maxConcurrency {
		return nil, fmt.Errorf("a concurrency of %d is not within 0..%d", cfg.Concurrency, maxConcurrency)
	}
	if cfg.Visibility == 0 {
		cfg.Visibility = DefaultVisibility
	}
	if err := worker.CheckVisibility(cfg.Visibility); err != nil {
		return nil, err
	}
	if cfg.Deadline <= 0 {
		cfg.Deadline = DefaultDeadline
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Extender.Log == nil {
		cfg.Extender.Log = cfg.Log
	}
	l := &Loop[Req, Out]{cfg: cfg}
	for range max(1, cfg.Concurrency) {
		l.places = append(l.places, Vitals{
			Heartbeat: &worker.Heartbeat{}, Extender: worker.NewLeaseExtender(cfg.Extender),
		})
	}
	return l, nil
}

// Heartbeats returns the heartbeats of the loop for a worker.Watchdog, one for each concurrent request. They also
// beat while there is no request, at least every worker.MaxWait.
func (l *Loop[Req, Out]) Heartbeats() []*worker.Heartbeat {
	all := make([]*worker.Heartbeat, len(l.places))
	for i, v := range l.places {
		all[i] = v.Heartbeat
	}
	return all
}

// Run works until ctx is done or the mailbox is closed, and returns when all requests have ended. When ctx is done,
// it returns the current requests to the mailbox at once.
func (l *Loop[Req, Out]) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, v := range l.places {
		all.Go(func() { l.serve(ctx, v) })
	}
	all.Wait()
	return nil
}

// serve handles one request after another.
func (l *Loop[Req, Out]) serve(ctx context.Context, v Vitals) {
	wait := firstPause
	for ctx.Err() == nil {
		v.Heartbeat.Beat()
		_, err := l.next(ctx, v, worker.MaxWait)
		switch {
		case err == nil:
			wait = firstPause
			continue
		case errors.Is(err, worker.ErrMailboxClosed) || ctx.Err() != nil:
			return
		}
		l.cfg.Log.Warn("Requests cannot be received; trying again", "error", err, "pause", wait)
		pause.For(ctx, wait/2+rand.N(wait/2))
		wait = min(2*wait, maxPause)
	}
}

// Next waits up to wait for one request, handles it, and reports whether there was one. It is for programs that
// decide themselves when to work. Next and Run must not run concurrently.
func (l *Loop[Req, Out]) Next(ctx context.Context, wait time.Duration) (handled bool, err error) {
	return l.next(ctx, l.places[0], wait)
}

func (l *Loop[Req, Out]) next(ctx context.Context, v Vitals, wait time.Duration) (handled bool, err error) {
	messages, err := l.cfg.Requests.Receive(ctx, 1, l.cfg.Visibility, wait)
	if err != nil || len(messages) == 0 {
		return false, err
	}
	out, err := l.execute(ctx, messages[0], v)
	l.finish(ctx, messages[0], out, err)
	return true, nil
}

// execute does the work of a message while its beats extend it. It returns a panic as an error.
func (l *Loop[Req, Out]) execute(ctx context.Context, m worker.Message, v Vitals) (out Out, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.cfg.Deadline, ErrDeadline)
	defer cancel()
	detach, err := v.Extender.Attach(ctx, m, v.Heartbeat)
	if err != nil {
		return out, err
	}
	defer detach()
	defer func() {
		if r := recover(); r != nil {
			l.cfg.Log.Error("The work on a request panicked",
				"message", m.ID(), "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("the work panicked: %v", r)
		}
	}()
	v.Journal = l.journal(m)
	request, err := worker.DecodeBody[Req](m)
	if err != nil {
		return out, err
	}
	out, err = l.cfg.Execute(ctx, &Task[Req]{ID: m.ID(), Delivery: m.Deliveries(), Request: request, Vitals: v})
	if err != nil {
		_ = err.Error() // finish calls it too: if it panics, it must do so here, where the panic is caught
	}
	return out, err
}

// journal returns the journal of a message; nil if its mailbox keeps none.
func (l *Loop[Req, Out]) journal(m worker.Message) *worker.Journal {
	if j, ok := m.(worker.Journaled); ok {
		return j.Journal()
	}
	if m.Deliveries() > 1 {
		l.noJournal.Do(func() {
			l.cfg.Log.Warn("The mailbox keeps no journal: a request that is delivered again starts from the beginning",
				"message", m.ID())
		})
	}
	return nil
}
