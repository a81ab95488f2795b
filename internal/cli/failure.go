package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lessor"
	"lessor/client"
	"lessor/node"
)

// The exit codes.
const (
	exitDone    = 0
	exitRefused = 1
	exitUsage   = 2
	exitFault   = 3
)

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// refusedError is a refusal of our own.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// deniedError is a denial: a normal answer, but there is no lease to go on with.
type deniedError struct{ lessor.Denial }

func (e deniedError) Error() string {
	return fmt.Sprintf("denied: %s (%s): ask again in %d ms, or use --wait", e.Reason, e.Code, e.RetryAfterMS)
}

// exitCode returns the exit code of an error; of several, the worst.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		worst := exitDone
		for _, e := range many.Unwrap() {
			worst = max(worst, exitCode(e))
		}
		return worst
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[deniedError](err); ok {
		return exitRefused
	}
	if _, ok := errors.AsType[refusedError](err); ok {
		return exitRefused
	}
	if e, ok := errors.AsType[*lessor.Error](err); ok && e.Code != lessor.CodeUnavailable && e.Code != lessor.CodeInternal {
		return exitRefused
	}
	return exitFault
}

// report prints an error, one line for each that is in it.
func (a *app) report(ctx context.Context, err error) {
	if err == nil {
		return
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			a.report(ctx, e)
		}
		return
	}
	text := explain(a.withToken(err))
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		text = "interrupted"
	}
	for line := range strings.Lines(text) {
		fmt.Fprintln(a.Err, "lessor: "+clean(strings.TrimRight(line, "\r\n")))
	}
}

// withToken adds to a refusal for want of a token that there was one, and why it was not sent.
func (a *app) withToken(err error) error {
	e, ok := errors.AsType[*lessor.Error](err)
	if !ok || e.Code != lessor.CodeUnauthenticated || a.withheld == "" {
		return err
	}
	told := *e
	told.Detail += "; " + a.withheld
	return &told
}

// explain says what went wrong and what to do next.
func explain(err error) string {
	if u, ok := errors.AsType[*client.UnreachableError](err); ok {
		text := fmt.Sprintf("server not reachable at %s (%s): is `lessor serve` running? set --server or LESSOR_SERVER", u.Server, u.Err)
		if u.MayHaveArrived {
			text += "; the request may have been received, so look before you repeat it"
		}
		return text
	}
	e, ok := errors.AsType[*lessor.Error](err)
	if !ok {
		return err.Error()
	}
	text := e.Detail
	if text == "" {
		text = string(e.Code)
	}
	for _, f := range e.Fields {
		text += fmt.Sprintf("; %s: %s", f.Field, f.Message)
	}
	if next := nextStep(e); next != "" {
		text += ": " + next
	}
	if subject, ok := errors.AsType[subjectError](err); ok {
		text = subject.subject + ": " + text
	}
	return text + " (" + string(e.Code) + ")"
}

// nextStep says what a caller can do about a refusal.
func nextStep(e *lessor.Error) string {
	switch e.Code {
	case lessor.CodeUnauthenticated:
		return "a token is looked for in --token, LESSOR_TOKEN, and " + node.TokenName + " in the data folder (--data, LESSOR_DATA), " +
			"which goes only to the loopback address in " + node.AddressName + " beside it"
	case lessor.CodeForbidden:
		return "use a token that has the right (`lessor token create --role …`)"
	case lessor.CodeWorkerMismatch:
		return "give the --worker that requested the lease"
	case lessor.CodeLeaseNotFound:
		if e.EndedReason != "" {
			return "it has ended (" + e.EndedReason + "); `lessor leases` shows those that live"
		}
		return "`lessor leases` shows those that live"
	case lessor.CodeJobNotFound:
		return "`lessor jobs` shows those there are"
	case lessor.CodeDefinitionNotFound:
		return "`lessor schedules` shows those there are"
	case lessor.CodeRunNotFound:
		return "`lessor runs` shows those there are; a run begins with the first claim of its job"
	case lessor.CodeTokenNotFound:
		return "`lessor token list` shows those there are"
	case lessor.CodeUnavailable:
		if e.OutcomeUnknown {
			return "it may have happened all the same, so look before you repeat it"
		}
		return "nothing was changed; try again, and see `lessor doctor` if it stays so"
	case lessor.CodeInternal:
		return "look for trace " + e.TraceID + " in the server's log"
	case lessor.CodeRateLimited:
		return "try again in " + e.RetryAfter.String()
	default: // the detail says it all
		return ""
	}
}

// subjectError says which of several arguments an error is about.
type subjectError struct {
	subject string
	err     error
}

func (e subjectError) Error() string { return e.subject + ": " + e.err.Error() }
func (e subjectError) Unwrap() error { return e.err }
