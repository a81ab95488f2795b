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

	bodySmall   = 4 * kib         // ids, a reason, a flag
	bodyRequest = 64 * kib        // 200 types of 120 characters, escaped
	bodyBeat    = (64 + 20) * kib // a checkpoint, a little output in base64, and the envelope
	bodyOutput  = 1536 * kib      // lessor.MaxOutputCall in base64 and its envelope
	bodyDialog  = (6*8 + 8) * kib // an answer or a message of 8 KiB, escaped
	bodyJournal = 2 << 20         // an entry of the largest limit, or many small ones
	bodyBeats   = 64 * kib        // 1000 lease ids
	bodySchema  = (64 + 8) * kib  // a handler's schema and its envelope
	bodyBatch   = 16 << 20
	// resultExtra is the size of a completion besides its result: a checkpoint, and 8 KiB each of error and question,
	// escaped.
	resultExtra = (64 + 64 + 64) * kib

	maxDepth = 1000 // of nested JSON; deeper documents are valid, but many parsers refuse them
	// One tenant gets at most half of each of the following, as do all callers without a tenant together.
	maxPolls = 20000
	// A stream costs a copy of every record, so there are fewer streams than waiting requests.
	maxStreams = 1000
	// maxBodies bounds the bodies of all current requests, in bytes.
	maxBodies = 256 << 20
)

var (
	errBusy = &lessor.Error{
		Code: lessor.CodeRateLimited, Detail: "too many requests are held open",
		RetryAfter: time.Second,
	}
	errStopping = &lessor.Error{Code: lessor.CodeUnavailable, Detail: "the server is stopping", RetryAfter: time.Second}
)

// hold prepares a request that may stay open for up to wait: it takes a place, does not count in the busy rating, and
// may be silent for that long. Its context ends, with the refusal as cause, when the server stops or the caller loses
// access. Callers of hold must call release.
func (c *call) hold(places *quota.Limit, kind string, wait time.Duration) (ctx context.Context, release func(),
	err error,
) {
	if n := c.bytes; n > 0 { // what waits counts against the share of its tenant, also if it is light
		c.dropBody()
		if !c.api.bodies.Enter(c.caller.Tenant, n) {
			return nil, nil, errBodies
		}
		c.bytes = n
	}
	if !places.Enter(c.caller.Tenant, 1) {
		return nil, nil, errBusy
	}
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

// heldErr returns why the server ended a request, or err if the client left or the outcome is not known.
func heldErr(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*lessor.Error](err); ok && e.OutcomeUnknown {
		return err
	}
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
