package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"lessor"
	"lessor/internal/quota"
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
	// Of the following one tenant gets at most half, as do all callers that are bound to none.
	maxPolls = 20000
	// A stream costs a copy of every record, so there may be fewer of them than of requests that wait.
	maxStreams = 1000
	// maxBodies bounds the bodies of all requests under way, in bytes.
	maxBodies = 256 << 20
)

var (
	errBusy     = &lessor.Error{Code: lessor.CodeRateLimited, Detail: "too many requests are held open", RetryAfter: time.Second}
	errStopping = &lessor.Error{Code: lessor.CodeUnavailable, Detail: "the server is stopping", RetryAfter: time.Second}
)

// hold prepares a request that may be kept open for up to wait: it takes one of the places, does not count in the busy rating, its
// connection may be silent for that long, and its context ends, with the refusal as cause, when the server stops or the caller is
// no longer let in. The caller must call release.
func (c *call) hold(places *quota.Limit, kind string, wait time.Duration) (ctx context.Context, release func(), err error) {
	if !places.Enter(c.caller.Tenant, 1) {
		return nil, nil, errBusy
	}
	c.dropBody() // what is kept of it is bounded by the places
	c.seen.Hold(kind)
	c.deadlines(time.Time{}, time.Now().Add(wait+writeTime))
	guarded, unguard := c.guard(c.r.Context())
	ctx, cancel := context.WithCancelCause(guarded)
	forget := context.AfterFunc(Stopping(c.r.Context()), func() { cancel(errStopping) })
	return ctx, func() {
		forget()
		cancel(nil)
		unguard()
		places.Leave(c.caller.Tenant, 1)
	}, nil
}

// heldErr tells a request that we ended, and why, from one whose client left.
func heldErr(ctx context.Context, err error) error {
	if refusal, ok := errors.AsType[*lessor.Error](context.Cause(ctx)); err != nil && ok {
		return refusal
	}
	return err
}

// tooLarge reports whether reading a body ended at its limit.
func tooLarge(err error) bool {
	var e *http.MaxBytesError
	return errors.As(err, &e)
}
