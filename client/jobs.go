package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"lessor"
	"lessor/internal/pause"
)

// Submit submits a job of jobType. The payload is encoded as JSON and must give an object; nil means {}. A nil o takes
// all defaults. With an idempotency key the client repeats the call when a server does not answer.
func (c *Client) Submit(
	ctx context.Context, jobType string, payload any, o *lessor.SubmitOptions,
) (lessor.Submitted, error) {
	s, err := o.Submission(jobType, payload)
	if err != nil {
		return lessor.Submitted{}, err
	}
	return c.SubmitJob(ctx, s)
}

// SubmitJob is Submit with the body as the HTTP API defines it.
func (c *Client) SubmitJob(ctx context.Context, s lessor.Submission) (lessor.Submitted, error) {
	var answer jobAnswer
	status, err := c.do(ctx, call{
		method: http.MethodPost, path: scheduler + "/jobs", body: s, safe: s.IdempotencyKey != nil,
	}, &answer)
	return lessor.Submitted{Job: answer.Job, Existing: status == http.StatusOK}, err
}

// SubmitBatch submits 1 to 1000 jobs, all or none, and returns them in the same order. For a known idempotency key it
// returns the first job with that key.
func (c *Client) SubmitBatch(ctx context.Context, subs []lessor.Submission) ([]lessor.Job, error) {
	answer, err := c.submitBatch(ctx, subs, nil)
	return answer.Jobs, err
}

// SubmitBatchIDs is SubmitBatch for callers that need only the ids: the answer is shorter, and the call is cheaper.
func (c *Client) SubmitBatchIDs(ctx context.Context, subs []lessor.Submission) ([]lessor.JobID, error) {
	answer, err := c.submitBatch(ctx, subs, new(lessor.ViewIDs))
	if e, ok := errors.AsType[*lessor.Error](err); ok && e.Code == lessor.CodeInvalidRequest {
		// A server of an older release does not know the view, and stored nothing. It answers with the jobs.
		answer, err = c.submitBatch(ctx, subs, nil)
	}
	for i := range answer.Jobs {
		answer.JobIDs = append(answer.JobIDs, answer.Jobs[i].ID)
	}
	return answer.JobIDs, err
}

// submissions is the body of a batch.
type submissions struct {
	Jobs []lessor.Submission `json:"jobs"`
	View *string             `json:"view,omitempty"`
}

func (c *Client) submitBatch(ctx context.Context, subs []lessor.Submission, view *string) (jobsAnswer, error) {
	safe := true
	for _, s := range subs {
		safe = safe && s.IdempotencyKey != nil
	}
	var answer jobsAnswer
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: scheduler + "/jobs/batch", safe: safe, limit: maxList,
		body: submissions{Jobs: subs, View: view},
	}, &answer)
	return answer, err
}

// Job returns one job.
func (c *Client) Job(ctx context.Context, id lessor.JobID) (lessor.Job, error) {
	return get[lessor.Job](ctx, c, jobPath(id, ""), nil, maxObject)
}

// AwaitJob returns a job when it has ended, or as it is after wait, which is at most 30 s.
func (c *Client) AwaitJob(ctx context.Context, id lessor.JobID, wait time.Duration) (job lessor.Job, err error) {
	q := url.Values{"wait_ms": {strconv.FormatInt(wait.Milliseconds(), 10)}}
	_, err = c.do(ctx, call{method: http.MethodGet, path: jobPath(id, ""), query: q, safe: true, hold: wait}, &job)
	return job, err
}

// maxHold is how long a server holds a call.
const maxHold = 30 * time.Second

// Wait returns a job when it has ended: completed, cancelled, or failed or expired with no attempt left. It goes on
// while no server can be reached, until ctx is done or a server refuses.
func (c *Client) Wait(ctx context.Context, id lessor.JobID) (lessor.Job, error) {
	for failures := 0; ; {
		job, err := c.AwaitJob(ctx, id, maxHold)
		again, _ := repeatable(err)
		switch {
		case err == nil && job.Final(), err != nil && !again:
			return job, err
		case err == nil:
			failures = 0
			continue
		}
		failures++
		if !pause.For(ctx, roundPause(failures, err)) {
			return job, ctx.Err()
		}
	}
}

// Jobs returns one page of the jobs that match f, newest first.
func (c *Client) Jobs(ctx context.Context, f lessor.JobFilter) (jobs []lessor.Job, next string, err error) {
	q := page(f.Limit, f.Cursor)
	set(q, "state", string(f.State))
	set(q, "type", f.Type)
	set(q, "tag", f.Tag)
	setTenant(q, "tenant_id", f.Tenant)
	return list[lessor.Job](ctx, c, scheduler+"/jobs", "jobs", q)
}

// AllJobs returns all jobs that match f; f.Limit is the size of a page.
func (c *Client) AllJobs(ctx context.Context, f lessor.JobFilter) iter.Seq2[lessor.Job, error] {
	return eachPage(f.Cursor, func(cursor string) ([]lessor.Job, string, error) {
		f.Cursor = cursor
		return c.Jobs(ctx, f)
	})
}

// Events returns one page of the record of a job, oldest first.
func (c *Client) Events(
	ctx context.Context, id lessor.JobID, limit int, cursor string,
) (events []lessor.Event, next string, err error) {
	return list[lessor.Event](ctx, c, jobPath(id, "/events"), "events", page(limit, cursor))
}

// AllEvents returns the whole record of a job, oldest first.
func (c *Client) AllEvents(ctx context.Context, id lessor.JobID) iter.Seq2[lessor.Event, error] {
	return eachPage("", func(cursor string) ([]lessor.Event, string, error) {
		return c.Events(ctx, id, maxPage, cursor)
	})
}

// Journal returns one page of the journal of a job, oldest first, behind the entry whose number is after; "" begins
// with the first.
func (c *Client) Journal(
	ctx context.Context, id lessor.JobID, limit int, after string,
) (entries []lessor.JournalEntry, next string, err error) {
	q := page(limit, "")
	set(q, "after", after)
	return list[lessor.JournalEntry](ctx, c, jobPath(id, "/journal"), "journal", q)
}

// AllJournal returns the whole journal of a job, oldest first.
func (c *Client) AllJournal(ctx context.Context, id lessor.JobID) iter.Seq2[lessor.JournalEntry, error] {
	return eachPage("", func(after string) ([]lessor.JournalEntry, string, error) {
		return c.Journal(ctx, id, maxPage, after)
	})
}

// Why returns the reasons why a job does not run now.
func (c *Client) Why(ctx context.Context, id lessor.JobID) (lessor.Why, error) {
	return get[lessor.Why](ctx, c, jobPath(id, "/why"), nil, maxObject)
}

// Cancel cancels a job. A waiting job ends at once, and so does a leased one if force is set; otherwise the worker of a
// leased job is asked to stop.
func (c *Client) Cancel(ctx context.Context, id lessor.JobID, force bool) (lessor.Job, error) {
	return send[lessor.Job](ctx, c, http.MethodPost, jobPath(id, "/cancel"), map[string]bool{"force": force})
}

// Retry queues a job that ended without success for one more attempt, or makes a waiting job due now.
func (c *Client) Retry(ctx context.Context, id lessor.JobID) (lessor.Job, error) {
	return send[lessor.Job](ctx, c, http.MethodPost, jobPath(id, "/retry"), nil)
}

// Answer answers the question of a job that waits, which queues the job. It may be repeated: the same answer again
// changes nothing. A question that has another answer, or that the job does not ask any more, is a CodeConflict.
func (c *Client) Answer(
	ctx context.Context, id lessor.JobID, question lessor.QuestionID, answer string,
) (lessor.Job, error) {
	var job lessor.Job
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: jobPath(id, "/answer"), safe: true,
		body: lessor.Answer{QuestionID: new(question.String()), Answer: &answer},
	}, &job)
	return job, err
}

// Message sends a message to a job; its worker receives it once, in order. A job that has ended, or that has too many
// messages which its worker has not seen, is a CodeConflict.
func (c *Client) Message(ctx context.Context, id lessor.JobID, text string) (lessor.Message, error) {
	return send[lessor.Message](ctx, c, http.MethodPost, jobPath(id, "/messages"), lessor.MessageAsk{Text: &text})
}

// MessageOnce is Message with a key: the same message with the same key again is not sent twice, so the client repeats
// the call when a server does not answer. The server remembers the keys of a job's last 1000 messages.
func (c *Client) MessageOnce(ctx context.Context, id lessor.JobID, key, text string) (m lessor.Message, err error) {
	_, err = c.do(ctx, call{
		method: http.MethodPost, path: jobPath(id, "/messages"), body: lessor.MessageAsk{Text: &text, Key: &key},
		safe: true,
	}, &m)
	return m, err
}

func jobPath(id lessor.JobID, rest string) string { return scheduler + "/jobs/" + id.String() + rest }
