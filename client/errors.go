package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"lessor"
)

var errTimeout = errors.New("no answer in time")

// maxProblem bounds the body of an error.
const maxProblem = 1 << 20

// UnreachableError means that no server answered. Server is the last one that was tried.
type UnreachableError struct {
	Server string
	// MayHaveArrived means that the server may have received and executed the request.
	MayHaveArrived bool
	Err            error
}

// Error names the server and says if the outcome is unknown.
func (e *UnreachableError) Error() string {
	s := "reach " + e.Server + ": " + e.Err.Error()
	if e.MayHaveArrived {
		s += " (the request may have been received)"
	}
	return s
}

// Unwrap returns the cause; a context that ended is among the causes.
func (e *UnreachableError) Unwrap() error { return e.Err }

func unreachable(ctx context.Context, base string, received bool, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // its URL repeats the server
	}
	if errors.Is(context.Cause(ctx), errTimeout) {
		err = errTimeout
	}
	return &UnreachableError{Server: base, MayHaveArrived: received, Err: err}
}

// neverSent reports whether err occurred before the first byte was sent: there was no address or no connection. After
// every other error the server may have received the request.
func neverSent(err error) bool {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// problem is the body of an error (RFC 9457).
type problem struct {
	Code        lessor.Code         `json:"code"`
	Detail      string              `json:"detail"`
	Errors      []lessor.FieldError `json:"errors"`
	EndedReason string              `json:"ended_reason"`
	Outcome     string              `json:"outcome"`
	TraceID     string              `json:"trace_id"`
}

// refusal turns an answer that is not 2xx into an error: a *lessor.Error if it came from Lessor. A 502, 503 or 504 of a
// gateway does not say what happened behind it. A 413 of a gateway means what it means from Lessor: a repetition is
// refused too, and something smaller may pass.
func refusal(base string, k call, resp *http.Response) error {
	var p problem
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err := json.Unmarshal(data, &p); err == nil && p.Code != "" {
		return &lessor.Error{
			Code:           p.Code,
			Detail:         p.Detail,
			Fields:         p.Errors,
			EndedReason:    p.EndedReason,
			RetryAfter:     retryAfter(resp.Header.Get("Retry-After")),
			OutcomeUnknown: p.Outcome == "unknown",
			TraceID:        p.TraceID,
		}
	}
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &UnreachableError{Server: base, MayHaveArrived: true, Err: fmt.Errorf("answered %s", resp.Status)}
	case http.StatusRequestEntityTooLarge:
		return &lessor.Error{
			Code:   lessor.CodePayloadTooLarge,
			Detail: fmt.Sprintf("a gateway before %s answered %s %s with %s", base, k.method, k.path, resp.Status),
		}
	}
	return fmt.Errorf("%s answered %s %s with %s: is it a Lessor server?", base, k.method, k.path, resp.Status)
}

// maxRetryAfter bounds the wait that a server may ask for. More is a mistake, and an overflow must not become a short
// wait.
const maxRetryAfter = 24 * time.Hour

// retryAfter parses the seconds in the header. The server never sends a date.
func retryAfter(header string) time.Duration {
	s, err := strconv.ParseInt(header, 10, 32)
	if err != nil || s < 0 {
		return 0
	}
	return min(time.Duration(s)*time.Second, maxRetryAfter)
}
