package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"lessor"
	"lessor/client"
	"lessor/internal/table"
)

// The exit codes.
const (
	exitDone    = 0
	exitRefused = 1
	exitUsage   = 2
	exitFault   = 3
	exitFailed  = 4   // the job that the command waited for failed or expired
	exitStopped = 5   // it was cancelled
	exitSignal  = 130 // a signal ended the command, as a shell reports SIGINT
	exitDiffers = 2   // of --exit-code, as in other tools that show a difference
)

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

const wrongArgument = `^invalid argument ("[^"]*") for "(?:-., )?(--[^"]*)" flag: `

// The texts of the libraries that read the command line, which plainUsage replaces.
var (
	anyOfGroup  = regexp.MustCompile(`^at least one of the flags in the group \[(.*)\] is required$`)
	oneOfGroup  = regexp.MustCompile(`^if any flags in the group .* none of the others can be; \[(.*)\] were all set$`)
	wrongSwitch = regexp.MustCompile(wrongArgument + `strconv\.ParseBool: .*$`)
	notGiven    = regexp.MustCompile(`^required flag\(s\) "(.*)" not set$`)
	wrongNumber = regexp.MustCompile(wrongArgument + `strconv\.Parse\w+: .*$`)
)

// plainUsage returns an error about the command line in words of this program.
func plainUsage(text string) string {
	flags := func(names string) []string { return strings.Fields("--" + strings.ReplaceAll(names, " ", " --")) }
	if m := anyOfGroup.FindStringSubmatch(text); m != nil {
		return "nothing to do: give " + enumerate(flags(m[1]))
	}
	if m := oneOfGroup.FindStringSubmatch(text); m != nil {
		return strings.Join(flags(m[1]), " and ") + " exclude each other: give one of them"
	}
	if m := notGiven.FindStringSubmatch(text); m != nil {
		return "missing: --" + strings.ReplaceAll(m[1], `", "`, ", --")
	}
	text = wrongSwitch.ReplaceAllString(text, "$2 takes no value, or =false, not $1")
	return wrongNumber.ReplaceAllString(text, "$2 must be a whole number, not $1")
}

// refusedError is a refusal by this program.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// deniedError is a denial: a normal answer, but without a lease.
type deniedError struct{ lessor.Denial }

func (e deniedError) Error() string {
	return fmt.Sprintf("denied: %s (%s): ask again in %g s, or use --wait",
		e.Reason, e.Code, float64(e.RetryAfterMS)/1000)
}

// exitCode returns the exit code for an error; for joined errors, the worst.
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
	if errors.Is(err, errDiffers) {
		return exitDiffers
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if e, ok := errors.AsType[endedError](err); ok {
		if e.State == lessor.Cancelled {
			return exitStopped
		}
		return exitFailed
	}
	if _, ok := errors.AsType[leftError](err); ok {
		return exitSignal
	}
	if _, ok := errors.AsType[deniedError](err); ok {
		return exitRefused
	}
	if _, ok := errors.AsType[refusedError](err); ok {
		return exitRefused
	}
	switch lessor.CodeOf(err) {
	case "", lessor.CodeUnavailable, lessor.CodeInternal:
		return exitFault
	}
	return exitRefused
}

// interrupted reports whether a signal, which ends ctx, is the cause of an error.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// report prints an error; joined errors get one line each.
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
	text := explain(err) + a.tokenAdvice(err)
	if _, left := errors.AsType[leftError](err); interrupted(ctx, err) && !left {
		text = "interrupted"
	}
	for line := range strings.Lines(text) {
		a.note("%s", table.Clean(strings.TrimRight(line, "\r\n")))
	}
}

// tokenAdvice returns the lines below an "unauthenticated" refusal: why the admin token was not sent, and how to give
// one.
func (a *app) tokenAdvice(err error) (lines string) {
	e, ok := errors.AsType[*lessor.Error](err)
	if !ok || e.Code != lessor.CodeUnauthenticated {
		return ""
	}
	if a.withheld != "" {
		lines = "\n  " + a.withheld
	}
	return lines + "\n  give a token with --token or LESSOR_TOKEN, or the" +
		"\n  server's data folder with --data or LESSOR_DATA"
}

// explain returns what is printed for an error: one line, and one more for each field if several are wrong.
func explain(err error) string {
	if left, ok := errors.AsType[leftError](err); ok {
		return left.Error()
	}
	if u, ok := errors.AsType[*client.UnreachableError](err); ok {
		text := fmt.Sprintf("server not reachable at %s (%s): is `lessor serve` running? set --server or LESSOR_SERVER",
			u.Server, u.Err)
		if u.MayHaveArrived {
			text += "; the request may have been received, so check before you repeat it"
		}
		return text
	}
	e, ok := errors.AsType[*lessor.Error](err)
	if !ok {
		return err.Error()
	}
	text := cmp.Or(e.Detail, string(e.Code))
	if errors.Is(e, lessor.ErrLeaseNotFound) {
		text, _, _ = strings.Cut(text, ": ") // what follows is for a worker; nextStep is for people
	}
	if e.EndedReason != "" {
		text = "the lease has ended (" + e.EndedReason + ")"
	}
	if len(e.Fields) == 1 {
		text += fmt.Sprintf("; %s: %s", e.Fields[0].Field, e.Fields[0].Message)
	}
	if next := nextStep(e); next != "" {
		text += ": " + next
	}
	if subject, ok := errors.AsType[subjectError](err); ok {
		text = subject.subject + ": " + text
	}
	text += " (" + string(e.Code) + ")"
	for i := 0; len(e.Fields) > 1 && i < len(e.Fields); i++ {
		text += fmt.Sprintf("\n  %s: %s", e.Fields[i].Field, e.Fields[i].Message)
	}
	return text
}

// nextStep says what a caller can do about a refusal.
func nextStep(e *lessor.Error) string {
	switch e.Code {
	case lessor.CodeForbidden:
		return "use a token with a role that may do this (`lessor token create --role …`)"
	case lessor.CodeWorkerMismatch:
		return "give the --worker and the token that requested the lease"
	case lessor.CodeLeaseNotFound:
		return "`lessor leases` lists the live ones"
	case lessor.CodeAlertNotFound:
		return "`lessor alerts` lists them"
	case lessor.CodeJobNotFound:
		return "`lessor jobs` lists them"
	case lessor.CodeDefinitionNotFound:
		return "`lessor schedules` lists them"
	case lessor.CodeRunNotFound:
		return "`lessor runs` lists them, with --status QUEUED those that no worker has claimed"
	case lessor.CodeTokenNotFound:
		return "`lessor token list` lists them"
	case lessor.CodeUnavailable:
		if e.OutcomeUnknown {
			return "the change may have been made, so check before you repeat it"
		}
		return "nothing was changed; try again, and run `lessor doctor` if it happens again"
	case lessor.CodeInternal:
		return "look for trace " + e.TraceID + " in the server's log"
	case lessor.CodeRateLimited:
		return fmt.Sprintf("try again in %g s", e.RetryAfter.Seconds())
	default: // the detail is enough
		return ""
	}
}

// subjectError names the argument that an error is about.
type subjectError struct {
	subject string
	err     error
}

func (e subjectError) Error() string { return e.subject + ": " + e.err.Error() }
func (e subjectError) Unwrap() error { return e.err }
