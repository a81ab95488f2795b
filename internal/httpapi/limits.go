package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"lessor"
)

// The limits of requests. Those of values are in rules.
const (
	kib = 1 << 10

	bodySmall   = 4 * kib        // ids, a reason, a flag
	bodyRequest = 64 * kib       // 200 types of 120 characters, escaped
	bodyBeat    = (64 + 8) * kib // a checkpoint and its envelope
	bodyBeats   = 64 * kib       // 1000 lease ids
	bodySchema  = (64 + 8) * kib // a handler's schema and its envelope
	bodyBatch   = 16 << 20
	resultExtra = (64 + 64) * kib // what a completion may have besides its result: a checkpoint and 8 KiB of error, escaped

	maxDepth = 1000 // of nested JSON; deeper documents are valid, but many readers cannot take them back
	maxPolls = 10000
	// A stream costs a copy of every record, so there may be fewer of them than of requests that wait.
	maxStreams = 500
)

// gate lets a limited number in at a time.
type gate struct {
	most int64
	in   atomic.Int64
}

func (g *gate) enter() bool {
	if g.in.Add(1) > g.most {
		g.in.Add(-1)
		return false
	}
	return true
}

func (g *gate) leave() { g.in.Add(-1) }

var (
	errBusy     = &lessor.Error{Code: lessor.CodeRateLimited, Detail: "too many requests are held open", RetryAfter: time.Second}
	errStopping = &lessor.Error{Code: lessor.CodeUnavailable, Detail: "the server is stopping", RetryAfter: time.Second}
)

// hold prepares a request that may be kept open for up to wait: it counts against the gate, not in the busy rating, its
// connection may be silent for that long, and its context ends, with errStopping as cause, when the server stops. The
// caller must call release.
func (c *call) hold(g *gate, kind string, wait time.Duration) (ctx context.Context, release func(), err error) {
	if !g.enter() {
		return nil, nil, errBusy
	}
	c.seen.Hold(kind)
	c.deadlines(time.Time{}, time.Now().Add(wait+writeTime))
	ctx, cancel := context.WithCancelCause(c.r.Context())
	forget := context.AfterFunc(Stopping(c.r.Context()), func() { cancel(errStopping) })
	return ctx, func() {
		forget()
		cancel(nil)
		g.leave()
	}, nil
}

// heldErr tells a request that ended because the server stops from one whose client left.
func heldErr(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStopping) {
		return errStopping
	}
	return err
}

// tooLarge reports whether reading a body ended at its limit.
func tooLarge(err error) bool {
	var e *http.MaxBytesError
	return errors.As(err, &e)
}
