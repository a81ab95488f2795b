package worker

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"lessor"
)

// The causes for which a handler's context ends. Compare them with errors.Is on context.Cause(ctx).
var (
	// ErrLeaseLost means that another worker may be running the job now or soon: stop, and change nothing any more.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrMaxRuntime means that the attempt took longer than the job's max_runtime_s: the server fails it. The lease is
	// lost, so errors.Is also finds ErrLeaseLost.
	ErrMaxRuntime = fmt.Errorf("%w: the attempt exceeded the job's max_runtime_s", ErrLeaseLost)
	// ErrCancelled means that the job was cancelled.
	ErrCancelled = errors.New("the job is cancelled")
	// ErrDraining means that the worker is stopping and its DrainTimeout is over.
	ErrDraining = errors.New("the worker is draining")
)

// Permanent wraps the error of a handler to mark it as final: the job is not retried.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Release returns the error with which a handler gives its job back: the job is queued again after delay, and the
// attempt does not count. A job that is given back too often without progress in between (see jobs.max_interruptions)
// fails.
func Release(delay time.Duration) error { return &releaseError{max(0, delay)} }

type releaseError struct{ delay time.Duration }

func (e *releaseError) Error() string { return fmt.Sprintf("given back for %s", e.delay) }

// bounded returns text in the form that the server accepts: UTF-8 without NUL, cut to lessor.MaxErrorText.
func bounded(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= lessor.MaxErrorText {
		return text
	}
	cut := lessor.MaxErrorText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}
