package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"lessor"
	"lessor/internal/fault"
	"lessor/internal/scheduler"
)

// statuses maps every code to its HTTP status. A new code goes here and nowhere else.
var statuses = map[lessor.Code]int{
	lessor.CodeInvalidRequest:     http.StatusBadRequest,
	lessor.CodeInvalidValue:       http.StatusUnprocessableEntity,
	lessor.CodeUnauthenticated:    http.StatusUnauthorized,
	lessor.CodeForbidden:          http.StatusForbidden,
	lessor.CodeWorkerMismatch:     http.StatusForbidden,
	lessor.CodeLeaseNotFound:      http.StatusNotFound,
	lessor.CodeJobNotFound:        http.StatusNotFound,
	lessor.CodeTokenNotFound:      http.StatusNotFound,
	lessor.CodeDefinitionNotFound: http.StatusNotFound,
	lessor.CodeAlertNotFound:      http.StatusNotFound,
	lessor.CodeRunNotFound:        http.StatusNotFound,
	lessor.CodeErrorNotFound:      http.StatusNotFound,
	lessor.CodeTenantNotFound:     http.StatusNotFound,
	lessor.CodeRouteNotFound:      http.StatusNotFound,
	lessor.CodeMethodNotAllowed:   http.StatusMethodNotAllowed,
	lessor.CodeConflict:           http.StatusConflict,
	lessor.CodePreconditionFailed: http.StatusPreconditionFailed,
	lessor.CodePayloadTooLarge:    http.StatusRequestEntityTooLarge,
	lessor.CodeRateLimited:        http.StatusTooManyRequests,
	lessor.CodeUnavailable:        http.StatusServiceUnavailable,
	lessor.CodeInternal:           http.StatusInternalServerError,
}

// statusClientGone is what the metrics show for a caller that left before its answer.
const statusClientGone = 499

// problem is a refusal on the wire (RFC 9457).
type problem struct {
	Type        string              `json:"type"`
	Title       string              `json:"title"`
	Status      int                 `json:"status"`
	Code        lessor.Code         `json:"code"`
	Detail      string              `json:"detail"`
	TraceID     string              `json:"trace_id"`
	Errors      []lessor.FieldError `json:"errors,omitempty"`
	EndedReason string              `json:"ended_reason,omitempty"`
	Outcome     string              `json:"outcome,omitempty"`
}

// refuse answers with a refusal as it is, or with a fault without its detail, which is logged. A fault after the answer
// began cuts the connection, so that the caller cannot take half an answer for a whole one.
func (c *call) refuse(err error) {
	if errors.Is(err, context.Canceled) && c.r.Context().Err() != nil {
		c.w.status = statusClientGone
		panic(http.ErrAbortHandler) // a half-closed client would take an empty answer for a success
	}
	e := c.refusal(err)
	if c.w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	if e == scheduler.ErrStarting || e == errNoBook {
		c.seen.Ignore() // a start is no load, and would raise the busy rating
	}
	setHeaders(c.w.Header(), e)
	p := problem{
		Type: "about:blank", Title: http.StatusText(statuses[e.Code]), Status: statuses[e.Code], Code: e.Code,
		Detail: e.Detail, TraceID: c.trace.id, Errors: e.Fields, EndedReason: e.EndedReason,
	}
	if e.OutcomeUnknown {
		p.Outcome = "unknown"
	}
	if err := c.send(p.Status, "application/problem+json", p); err != nil {
		panic(err) // a problem can always be encoded
	}
}

// setHeaders tells a caller in headers what to do next.
func setHeaders(h http.Header, e *lessor.Error) {
	if e.Code == lessor.CodeUnauthenticated {
		h.Set("WWW-Authenticate", `Bearer realm="lessor"`)
	}
	if e.Code == lessor.CodeRateLimited || e.Code == lessor.CodeUnavailable {
		h.Set("Retry-After", strconv.Itoa(retryAfter(e.RetryAfter)))
	}
}

// refusal returns the refusal that the caller gets. It logs the detail of a fault; nothing else does.
func (c *call) refusal(err error) *lessor.Error {
	var e *lessor.Error
	if errors.As(err, &e) && (e == errInternal || statuses[e.Code] != 0 && e.Code != lessor.CodeInternal) {
		return e
	}
	c.log(err.Error())
	return errInternal
}

// errInternal is the answer to every fault.
var errInternal = &lessor.Error{
	Code: lessor.CodeInternal, Detail: "something went wrong here; the server's log has it under this trace id",
}

func (c *call) log(what string, attrs ...slog.Attr) {
	c.api.log.LogAttrs(c.r.Context(), slog.LevelError, "request failed",
		append(append(attrs, slog.String("error", what)), c.about()...)...)
}

// about returns the log attributes of a call: its trace, and tenant, job and lease if known.
func (c *call) about() []slog.Attr {
	path := ""
	if c.route != nil {
		path = c.route.path
	}
	attrs := []slog.Attr{
		slog.String("trace_id", c.trace.id), slog.String("method", shorten(c.r.Method, 20)),
		slog.String("route", path),
	}
	if c.caller.Tenant != nil {
		attrs = append(attrs, slog.String("tenant_id", c.caller.Tenant.String()))
	}
	for _, name := range []string{"job_id", "lease_id"} {
		if id := c.r.PathValue(name); id != "" {
			attrs = append(attrs, slog.String(name, shorten(id, maxLoggedID)))
		}
	}
	return attrs
}

// maxLoggedID is longer than every id.
const maxLoggedID = 40

// rescue turns a panic of a handler into an answer.
func (c *call) rescue() {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v) // net/http cuts the connection
	}
	f := fault.Of(fault.HTTP, v)
	c.api.telemetry.Fault(f.Place)
	c.log(f.Error(), slog.String("stack", string(f.Stack)))
	if c.w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	c.refuse(errInternal)
}

// end counts the request.
func (c *call) end() {
	path := ""
	if c.route != nil {
		path = c.route.path
	}
	status := c.w.status
	if status == 0 {
		status = http.StatusOK // net/http answers 200 for a handler that wrote nothing
	}
	c.endBody()
	c.span.End(status)
	if ctx := c.r.Context(); c.api.log.Enabled(ctx, slog.LevelDebug) {
		c.api.log.LogAttrs(ctx, slog.LevelDebug, "request", append(c.about(), slog.Int("status", status))...)
	}
	c.seen.End(path, c.r.Method, status)
}

// retryAfter rounds up to whole seconds, the unit of the header.
func retryAfter(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}
