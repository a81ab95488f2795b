package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// client is a caller of the API.
type client struct {
	*task
	random *rand.Rand
	caller scheduler.Caller
	at     int // the node that it calls
}

// The faults of the network.
var (
	errRefused = errors.New("nobody listens") // the call never arrived
	errLost    = errors.New("the answer was lost")
)

func (w *world) client(t *task, caller scheduler.Caller) *client {
	return &client{task: t, random: w.rng(t.name), caller: caller, at: w.random.IntN(len(w.nodes))}
}

func (c *client) chance(percent float64) bool { return c.random.Float64()*100 < percent }

// networkFault reports whether a fault of the network happens now that happens in percent of all cases.
func (c *client) networkFault(percent float64) bool {
	return c.world.plan.has(Messages) && !c.world.quiet && c.chance(percent)
}

// delay is how long a message is on its way.
func (c *client) delay() time.Duration {
	d := time.Duration(c.random.ExpFloat64() * float64(500*time.Microsecond))
	if c.networkFault(1) {
		d += time.Duration(c.random.ExpFloat64() * float64(3*time.Second))
	}
	return d
}

// call makes one call of the API over a network that may lose it, delay it, or deliver it twice.
func call[T any](c *client, verb string, do func(ctx context.Context, n *node) (T, error)) (T, error) {
	w := c.world
	w.counts.Calls++
	if c.networkFault(2) {
		w.spawn("echo of "+c.name, nil, func(t *task) {
			echo := &client{task: t, random: c.random, caller: c.caller, at: w.random.IntN(len(w.nodes))}
			t.sleep(2 * echo.delay())
			_, _ = transmit(echo, do) // the answer is lost
		})
	}
	v, err := transmit(c, do)
	w.trace.say(w, c.name, verb, outcome(err))
	switch code := lessor.CodeOf(err); {
	case err == nil || code != "" && code != lessor.CodeInternal:
	case errors.Is(err, errRefused) || errors.Is(err, errLost) || errors.Is(err, context.Canceled):
	default:
		w.fail("fault", "%s of %s is answered: %v", verb, c.name, err)
	}
	if err != nil && !definite(err) || errors.Is(err, errRefused) || lessor.CodeOf(err) == lessor.CodeUnavailable {
		c.at = c.random.IntN(len(w.nodes))
	}
	return v, err
}

// do makes a call whose answer is an error or nothing.
func (c *client) do(verb string, do func(ctx context.Context, n *node) error) error {
	_, err := call(c, verb, func(ctx context.Context, n *node) (struct{}, error) { return struct{}{}, do(ctx, n) })
	return err
}

func outcome(err error) string {
	if code := lessor.CodeOf(err); code != "" {
		return string(code)
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

// definite reports whether a call that failed has changed nothing for certain.
func definite(err error) bool {
	if e, ok := errors.AsType[*lessor.Error](err); ok {
		return !e.OutcomeUnknown
	}
	return errors.Is(err, errRefused)
}

// transmit carries a call to a node and its answer back.
func transmit[T any](c *client, do func(context.Context, *node) (T, error)) (v T, err error) {
	w := c.world
	c.sleep(c.delay())
	n := w.nodes[c.at]
	if n.dead || c.networkFault(0.5) {
		return v, errRefused
	}
	ctx := context.Background()
	if c.networkFault(1) { // the caller goes while its call is on its way
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		w.spawn("hang-up of "+c.name, nil, func(t *task) {
			t.sleep(c.delay())
			cancel()
			n.hungUp(c.task)
		})
	}
	answer, err := serve(ctx, c.task, n, do)
	c.sleep(c.delay())
	if c.networkFault(1) {
		return v, errLost
	}
	return answer, err
}

// serve runs a call in the process that answers it.
func serve[T any](
	ctx context.Context, t *task, n *node, do func(context.Context, *node) (T, error),
) (v T, err error) {
	t.in, t.inAt = n, t.world.now
	defer func() {
		t.in = nil
		if p := recover(); p != nil {
			if _, dead := p.(crashed); !dead || t.world.over {
				panic(p)
			}
			err = errLost
		}
	}()
	return do(ctx, n)
}

// hungUp makes the task of a caller that is gone check its context.
func (n *node) hungUp(t *task) {
	if i := slices.Index(n.waiting, t); i >= 0 {
		n.waiting = slices.Delete(n.waiting, i, i+1)
		n.world.wake(t, n.world.now)
	}
}
