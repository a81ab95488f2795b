package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"lessor"
)

// Submit submits a job of jobType. The payload is encoded as JSON and must give an object; nil means {}. A nil o takes
// all defaults. With an idempotency key the client repeats the call when a server does not answer.
func (c *Client) Submit(
	ctx context.Context, jobType string, payload any, o *lessor.SubmitOptions,
) (lessor.Submitted, error) {
	s, err := o.Submission(jobType, payload, time.Now())
	if err != nil {
		return lessor.Submitted{}, err
	}
	return c.SubmitJob(ctx, s)
}

// SubmitJob is Submit with the body as the HTTP API defines it.
func (c *Client) SubmitJob(ctx context.Context, s lessor.Submission) (lessor.Submitted, error) {
	var job lessor.Submitted
	status, err := c.do(ctx, call{
		method: http.MethodPost, path: scheduler + "/jobs", body: s, safe: s.IdempotencyKey != nil,
	}, &job)
	job.Existing = status == http.StatusOK
	return job, err
}

// SubmitBatch submits 1 to 1000 jobs, all or none, and returns them in the order given. Known idempotency keys return
// their job in place.
func (c *Client) SubmitBatch(ctx context.Context, subs []lessor.Submission) ([]lessor.Job, error) {
	safe := true
	for _, s := range subs {
		safe = safe && s.IdempotencyKey != nil
	}
	var answer struct {
		Jobs []lessor.Job `json:"jobs"`
	}
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: scheduler + "/jobs/batch", safe: safe, limit: maxList,
		body: struct {
			Jobs []lessor.Submission `json:"jobs"`
		}{subs},
	}, &answer)
	return answer.Jobs, err
}

// Job returns one job.
func (c *Client) Job(ctx context.Context, id lessor.JobID) (lessor.Job, error) {
	var job lessor.Job
	_, err := c.read(ctx, jobPath(id, ""), nil, maxObject, &job)
	return job, err
}

// Jobs returns one page of the jobs that match f, newest first, and the cursor of the next page, "" at the end. A page
// may be short, or empty, and still have a successor.
func (c *Client) Jobs(ctx context.Context, f lessor.JobFilter) (jobs []lessor.Job, next string, err error) {
	q := page(f.Limit, f.Cursor)
	set(q, "state", string(f.State))
	set(q, "type", f.Type)
	set(q, "tag", f.Tag)
	if f.Tenant != nil {
		q.Set("tenant_id", f.Tenant.String())
	}
	var answer struct {
		Jobs       []lessor.Job `json:"jobs"`
		NextCursor *string      `json:"next_cursor"`
	}
	_, err = c.read(ctx, scheduler+"/jobs", q, maxList, &answer)
	return answer.Jobs, deref(answer.NextCursor), err
}

// AllJobs returns all jobs that match f, page by page; f.Limit is the size of a page. It ends at the first error.
func (c *Client) AllJobs(ctx context.Context, f lessor.JobFilter) iter.Seq2[lessor.Job, error] {
	return eachPage(f.Cursor, func(cursor string) ([]lessor.Job, string, error) {
		f.Cursor = cursor
		return c.Jobs(ctx, f)
	})
}

// Events returns one page of a job's record, oldest first.
func (c *Client) Events(
	ctx context.Context, id lessor.JobID, limit int, cursor string,
) (events []lessor.Event, next string, err error) {
	var answer struct {
		Events     []lessor.Event `json:"events"`
		NextCursor *string        `json:"next_cursor"`
	}
	_, err = c.read(ctx, jobPath(id, "/events"), page(limit, cursor), maxList, &answer)
	return answer.Events, deref(answer.NextCursor), err
}

// AllEvents returns a job's whole record, oldest first. It ends at the first error.
func (c *Client) AllEvents(ctx context.Context, id lessor.JobID) iter.Seq2[lessor.Event, error] {
	return eachPage("", func(cursor string) ([]lessor.Event, string, error) {
		return c.Events(ctx, id, maxPage, cursor)
	})
}

// Why tells why a job does not run now.
func (c *Client) Why(ctx context.Context, id lessor.JobID) (lessor.Why, error) {
	var why lessor.Why
	_, err := c.read(ctx, jobPath(id, "/why"), nil, maxObject, &why)
	return why, err
}

// Cancel asks for a job's end: at once if nobody holds it or force is set, else when its worker obeys.
func (c *Client) Cancel(ctx context.Context, id lessor.JobID, force bool) (lessor.Job, error) {
	var job lessor.Job
	_, err := c.do(ctx, call{method: http.MethodPost, path: jobPath(id, "/cancel"), body: struct {
		Force bool `json:"force"`
	}{force}}, &job)
	return job, err
}

// Retry queues a job that ended without success for one more attempt, or makes a waiting one due now.
func (c *Client) Retry(ctx context.Context, id lessor.JobID) (lessor.Job, error) {
	var job lessor.Job
	_, err := c.do(ctx, call{method: http.MethodPost, path: jobPath(id, "/retry"), body: struct{}{}}, &job)
	return job, err
}

func jobPath(id lessor.JobID, rest string) string { return scheduler + "/jobs/" + id.String() + rest }
