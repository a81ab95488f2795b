package lessor

import (
	"errors"
	"time"
)

// Code is the stable name of a refusal.
type Code string

// The codes of refusals and faults. Each has one HTTP status, in internal/httpapi/errors.go.
const (
	CodeInvalidRequest     Code = "invalid_request"
	CodeInvalidValue       Code = "invalid_value"
	CodeUnauthenticated    Code = "unauthenticated"
	CodeForbidden          Code = "forbidden"
	CodeWorkerMismatch     Code = "worker_mismatch"
	CodeLeaseNotFound      Code = "lease_not_found"
	CodeJobNotFound        Code = "job_not_found"
	CodeTokenNotFound      Code = "token_not_found"
	CodeDefinitionNotFound Code = "definition_not_found"
	CodeAlertNotFound      Code = "alert_not_found"
	CodeRunNotFound        Code = "run_not_found"
	CodeErrorNotFound      Code = "error_not_found"
	CodeTenantNotFound     Code = "tenant_not_found"
	CodeRouteNotFound      Code = "route_not_found"
	CodeMethodNotAllowed   Code = "method_not_allowed"
	CodeConflict           Code = "conflict"
	CodePreconditionFailed Code = "precondition_failed"
	CodePayloadTooLarge    Code = "payload_too_large"
	CodeRateLimited        Code = "rate_limited"
	CodeUnavailable        Code = "unavailable"
	CodeInternal           Code = "internal"
)

// Error is a refusal: something the caller can act on. Two errors with the same code match under errors.Is.
type Error struct {
	Code   Code
	Detail string
	// Fields names what is wrong with the request, for invalid_request and invalid_value.
	Fields []FieldError
	// EndedReason says how a lease that is over ended, as long as that is remembered.
	EndedReason string
	// RetryAfter is how long to wait before asking again, for rate_limited and unavailable.
	RetryAfter time.Duration
	// OutcomeUnknown is set when the answer to a commit was lost: repeating with the same key is safe.
	OutcomeUnknown bool
	// TraceID is the server's trace id; only clients see it set.
	TraceID string
}

// FieldError says what is wrong with one field.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// The refusals that callers compare with.
var (
	ErrLeaseNotFound = &Error{
		Code:   CodeLeaseNotFound,
		Detail: "no such lease, or it is over: stop this work and request a lease",
	}
	ErrWorkerMismatch = &Error{
		Code:   CodeWorkerMismatch,
		Detail: "the lease was taken under another worker_id or with another token: send both as in the request for it",
	}
	ErrJobNotFound        = &Error{Code: CodeJobNotFound, Detail: "no such job"}
	ErrTokenNotFound      = &Error{Code: CodeTokenNotFound, Detail: "no such token"}
	ErrAlertNotFound      = &Error{Code: CodeAlertNotFound, Detail: "no such alert"}
	ErrDefinitionNotFound = &Error{Code: CodeDefinitionNotFound, Detail: "no such definition"}
	ErrRunNotFound        = &Error{Code: CodeRunNotFound, Detail: "no such run"}
	ErrErrorNotFound      = &Error{Code: CodeErrorNotFound, Detail: "no such error"}
	ErrConflict           = &Error{Code: CodeConflict}
	ErrPreconditionFailed = &Error{Code: CodePreconditionFailed}
	ErrUnavailable        = &Error{Code: CodeUnavailable}
	ErrRateLimited        = &Error{Code: CodeRateLimited}
	ErrForbidden          = &Error{Code: CodeForbidden}
	ErrInvalidRequest     = &Error{Code: CodeInvalidRequest}
	ErrInvalidValue       = &Error{Code: CodeInvalidValue}
)

// Error returns the code, the detail and the first field that is wrong.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if len(e.Fields) > 0 {
		s += " (" + e.Fields[0].Field + ": " + e.Fields[0].Message + ")"
	}
	return s
}

// Is matches any refusal with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// CodeOf returns the code of a refusal, or "" for a nil error and for faults.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}
