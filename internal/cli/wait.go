package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/table"
)

// endedError is a job that did not complete.
type endedError struct{ lessor.Job }

func (e endedError) Error() string {
	text := fmt.Sprintf("job %s: %s", e.ID, e.State)
	if line := firstLine(e.Job.Error); line != "" {
		text += ": " + line
	}
	return text + ": see `lessor jobs show " + e.ID.String() + "`"
}

// leftError is a signal that ended a wait, and what that means.
type leftError struct {
	means string
	err   error
}

func (e leftError) Error() string { return "interrupted" + e.means }
func (e leftError) Unwrap() error { return e.err }

// leftJob is a signal that ended the wait for a job.
func leftJob(id lessor.JobID, err error) error {
	return leftError{fmt.Sprintf("; job %s goes on: follow it with `lessor jobs logs -f %s`, or end it with "+
		"`lessor jobs cancel %s`", id, id, id), err}
}

// progressEvery is how often the bar shows the progress of a job.
const progressEvery = time.Second

// waitForEnd shows the progress of a job until it has ended, or with follow what it prints, and then prints its result.
// The error says how it ended, if it did not complete.
func (a *app) waitForEnd(ctx context.Context, c *client.Client, id lessor.JobID, follow bool) error {
	wait := a.awaitJob
	switch {
	case follow:
		a.note("job %s", id) // standard output is the job's
		wait = a.followJob
	case !a.json:
		a.say("%s", id)
	}
	job, err := wait(ctx, c, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return leftJob(id, err)
	case err != nil:
		return err
	}
	switch {
	case a.json:
		err = a.printJSON(job)
	case string(job.Result) != "null" && !follow:
		a.say("%s", table.Clean(string(job.Result)))
	}
	if job.State != lessor.Completed {
		err = errors.Join(err, endedError{job})
	}
	return err
}

// followJob prints the output of a job until it has ended.
func (a *app) followJob(ctx context.Context, c *client.Client, id lessor.JobID) (lessor.Job, error) {
	if _, err := a.printOutput(ctx, c, id, lessor.OutputQuery{}, true); err != nil {
		return lessor.Job{}, err
	}
	return c.Wait(ctx, id)
}

// awaitJob waits until a job has ended, and shows its progress meanwhile.
func (a *app) awaitJob(ctx context.Context, c *client.Client, id lessor.JobID) (lessor.Job, error) {
	job, asked := lessor.Job{State: lessor.Queued}, lessor.QuestionID{}
	m := a.meter(func(_, _ int64) string {
		text := string(job.State)
		if job.Progress != nil {
			text = fmt.Sprintf("%.0f %% %s", *job.Progress*100, text)
		}
		return table.Clean(strings.TrimSpace(text + " " + firstLine(job.Message)))
	})
	defer m.end()
	for {
		next, err := c.AwaitJob(ctx, id, progressEvery)
		switch {
		case err == nil:
			job = next
		case ctx.Err() == nil && exitCode(err) == exitFault: // the servers are away: Wait goes on until one is back
			return c.Wait(ctx, id)
		default:
			return job, err
		}
		if job.Final() {
			return job, nil
		}
		if q := job.Question; job.State == lessor.Waiting && q.ID != asked {
			asked = q.ID
			m.above(func() {
				a.note("it asks: %s (answer with `lessor jobs answer %s ANSWER`)", table.Clean(firstLine(&q.Text)), id)
			})
		}
		done := 0.0
		if job.Progress != nil {
			done = *job.Progress
		}
		m.update(min(int64(done*1000), 999), 1000) // a full bar would end
	}
}
