package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"lessor"
	"lessor/internal/pause"
	"lessor/internal/sentinel"
)

const (
	// maxResult is the largest result that every server takes.
	maxResult = 256 << 10
	// lastTry is how long a stopped shim still tries to report.
	lastTry = 5 * time.Second
	// releaseDelay is the delay of a job that could not run here.
	releaseDelay = 5 * time.Second
)

// exit returns the exit record of the command. cause says why it was stopped, or is nil; state is nil if it never
// started; text is the end of its error output, or the reason why it did not start.
func (s *shim) exit(state *os.ProcessState, cause error, text string) sentinel.Exit {
	lease := s.order.Grant.Lease
	e := sentinel.Exit{
		JobID: lease.JobID, LeaseID: lease.ID, WorkerID: lease.WorkerID, Fence: lease.Fence,
		Attempt: s.order.Grant.Job.Attempt,
		Status:  lessor.Failed, ExitCode: -1, StartedAt: lessor.At(s.started), EndedAt: lessor.At(time.Now()),
	}
	last := s.lastReport()
	e.Progress, e.Message, e.Checkpoint = last.Progress, last.Message, last.Checkpoint
	how := "did not begin: " + text
	if state != nil {
		e.ExitCode, e.Signal = state.ExitCode(), signalOf(state)
		how = state.String()
	} else {
		text = ""
	}
	var err error
	switch {
	case errors.Is(cause, errCancelled):
		e.Status = lessor.Cancelled
	case errors.Is(cause, errAsked):
		e.Status, e.Question, e.ExpiresInS = lessor.Waiting, &s.question.Question, s.question.ExpiresInS
	case errors.Is(cause, errTimeout):
		err = fmt.Errorf("ran longer than %g s: %s", s.order.Task.Timeout.Seconds(), how)
	case errors.Is(cause, errMaxRuntime), errors.Is(cause, errGone):
		err = cause
	case e.ExitCode != 0:
		err = errors.New(how)
		e.Permanent = slices.Contains(s.order.Task.PermanentExit, e.ExitCode)
	default:
		if e.Result, err = s.result(); err == nil {
			e.Status = lessor.Completed
		}
	}
	if err != nil {
		e.Error = failure(err.Error(), text)
	}
	return e
}

// finished reports whether a command that was asked to end had done its work. Many programs save their state and exit
// with 0 then, so the exit code alone says nothing: it counts with a result.
func (s *shim) finished(e sentinel.Exit) bool {
	_, err := s.folder.ReadFile(resultName, maxResult)
	return e.Status == lessor.Completed && err == nil
}

// failure is an error text that fits: how the command ended, and as much of its last output as there is room for.
func failure(how, text string) string {
	how = cutText(how, lessor.MaxErrorText/2)
	if text = cutText(text, lessor.MaxErrorText-len(how)-2); text == "" {
		return how
	}
	return how + "\n" + text
}

// summary is an exit record in one line: the status and, of a failure, how the command ended.
func summary(e sentinel.Exit) string {
	how, _, _ := strings.Cut(e.Error, "\n")
	return strings.TrimSpace(string(e.Status) + " " + how)
}

// result reads what the command left as its result, {} if it left none.
func (s *shim) result() (json.RawMessage, error) {
	data, err := s.folder.ReadFile(resultName, maxResult)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(data) == 0:
		return json.RawMessage("{}"), nil
	case err != nil:
		return nil, fmt.Errorf("the result cannot be taken: %w", err)
	case !json.Valid(data):
		return nil, errors.New("the result file is not JSON")
	}
	return data, nil
}

// writeExit writes the exit record and reports whether it did.
func (s *shim) writeExit(e sentinel.Exit) bool {
	err := s.folder.WriteExit(e)
	if err != nil {
		s.log.Warn("exit record is not written", "error", err)
	}
	return err == nil
}

// report sends the end of the attempt to the server, for as long as it takes. A shim that is stopped meanwhile tries
// once more and leaves the rest to the exit record.
func (s *shim) report(ctx context.Context, e sentinel.Exit) error {
	done := e.Completion()
	return s.insist(ctx, func(ctx context.Context) error {
		err := s.client.Complete(ctx, e.LeaseID, done)
		switch {
		case isRefused(err) && (done.Progress != nil || done.Message != nil || done.Checkpoint != nil):
			done.Progress, done.Message, done.Checkpoint = nil, nil, nil // they must not fail the job
		case lessor.CodeOf(err) == lessor.CodeConflict && e.Status == lessor.Cancelled, isRefused(err):
			done = lessor.Completion{
				WorkerID: done.WorkerID, Status: new(string(lessor.Failed)),
				Error: new(failure("the server refuses the report: "+err.Error(), e.Error)),
			}
		case err == nil:
			s.log.Info("reported", "status", *done.Status, "exit_code", e.ExitCode)
		}
		return err
	})
}

// release gives the lease back because of err, so that another worker can run the job later.
func (s *shim) release(ctx context.Context, err error) error {
	s.log.Warn("giving the lease back", "reason", err)
	lease := s.order.Grant.Lease
	last := s.lastReport()
	r := lessor.Release{
		WorkerID: &lease.WorkerID, Progress: last.Progress, Message: last.Message, Checkpoint: last.Checkpoint,
	}
	if errors.Is(err, errNoStart) {
		s.say(cannotBegin + err.Error())
		r.DelayMS, r.Reason = new(releaseDelay.Milliseconds()), new(lessor.ReleaseCannotStart)
	}
	return s.insist(ctx, func(ctx context.Context) error {
		err := s.client.Release(ctx, lease.ID, r)
		if isRefused(err) {
			r.Progress, r.Message, r.Checkpoint = nil, nil, nil // the lease must go back without them
		}
		return err
	})
}

// insist repeats a call until it is accepted, the lease is over, or the folder belongs to another attempt. If the
// folder was removed, it gives up after the ttl of the lease. If the token is refused, it gives up after a third of
// that, so that the Runner, which may have a newer token, can report the exit record while the lease lives. After the
// end of ctx it continues for lastTry.
func (s *shim) insist(ctx context.Context, call func(context.Context) error) error {
	trying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if pause.For(trying, lastTry) {
			cancel()
		}
	})()
	try := func() error {
		ctx, cancel := context.WithTimeout(trying, patience(s.order.Grant.Lease))
		defer cancel()
		return call(ctx)
	}
	begun, ttl := time.Now(), time.Duration(s.order.Grant.Lease.TTLMS)*time.Millisecond
	var refusedAt time.Time
	for failures := 1; ; failures++ {
		err := try()
		refusedAt = refusedSince(refusedAt, err)
		switch {
		case err == nil:
			return nil
		case isOver(err):
			s.log.Warn("the lease was over before the end was reported", "error", err)
			return nil
		case trying.Err() != nil:
			return fmt.Errorf("report the end: %w", err)
		case failures == 1:
			s.log.Warn("the end is not reported yet, trying again", "error", err)
		}
		switch {
		case s.superseded():
			return fmt.Errorf("report the end: %w", errSuperseded)
		case time.Since(begun) > ttl && s.folder.Gone():
			return fmt.Errorf("report the end: %w", errGone)
		case !refusedAt.IsZero() && time.Since(refusedAt) > patience(s.order.Grant.Lease):
			return fmt.Errorf("report the end: %w", err)
		}
		pause.For(trying, retryPause(failures))
	}
}

// refusedSince returns since when the token is refused, or zero if it is not, after another try. at is what it returned
// for the try before.
func refusedSince(at time.Time, err error) time.Time {
	switch code := lessor.CodeOf(err); {
	case code != lessor.CodeUnauthenticated && code != lessor.CodeForbidden && code != lessor.CodeRateLimited:
		return time.Time{}
	case at.IsZero() && code != lessor.CodeRateLimited: // a server also limits wrong tokens that come often
		return time.Now()
	}
	return at
}
