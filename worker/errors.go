package worker

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"lessor"
)

// Why a handler's context ends: compare with errors.Is on context.Cause(ctx).
var (
	// ErrLeaseLost says that somebody else may be running the job now, or soon: stop, and change nothing any more.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrCancelled says that somebody cancelled the job.
	ErrCancelled = errors.New("the job is cancelled")
	// ErrDraining says that the worker stops and the time for finishing is over.
	ErrDraining = errors.New("the worker is draining")
)

// Permanent wraps the error of a handler whose job would fail again: it is not retried.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Release is what a handler returns to give its job back: it is queued again after delay, without costing an attempt. A job
// that is given back too often without a sign of progress in between (20 times unless the server says otherwise) fails.
func Release(delay time.Duration) error { return &releaseError{max(0, delay)} }

type releaseError struct{ delay time.Duration }

func (e *releaseError) Error() string { return fmt.Sprintf("given back for %s", e.delay) }

// bounded returns text as the server takes it: UTF-8 without NUL, cut to lessor.MaxErrorText.
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
