package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"lessor"
)

// Run returns the audit of one run.
func (c *Client) Run(ctx context.Context, id lessor.JobID) (run lessor.Run, err error) {
	_, err = c.read(ctx, kernel+"/runs/"+id.String(), nil, maxObject, &run)
	return run, err
}

// Runs returns one page of the runs that match f, newest first, and the cursor of the next page, "" at the end. A
// page may be short, or empty, and still have a successor.
func (c *Client) Runs(ctx context.Context, f lessor.RunFilter) (runs []lessor.Run, next string, err error) {
	q := page(f.Limit, f.Cursor)
	set(q, "jobId", f.JobID)
	set(q, "status", string(f.Status))
	set(q, "traceId", f.Trace)
	setTenant(q, f.Tenant)
	return kernelPage[lessor.Run](ctx, c, "/runs", "runs", q)
}

// AllRuns returns all runs that match f, page by page. It ends at the first error.
func (c *Client) AllRuns(ctx context.Context, f lessor.RunFilter) iter.Seq2[lessor.Run, error] {
	return eachPage(f.Cursor, func(cursor string) ([]lessor.Run, string, error) {
		f.Cursor = cursor
		return c.Runs(ctx, f)
	})
}

// RunError returns what went wrong in the attempt that a run's LastErrorRef names.
func (c *Client) RunError(ctx context.Context, ref string) (e lessor.RunError, err error) {
	_, err = c.read(ctx, kernel+"/errors/"+url.PathEscape(ref), nil, maxObject, &e)
	return e, err
}

// Circuits returns one page of the circuits of definitions that failed lately, the last that opened first, and the
// cursor of the next page, "" at the end.
func (c *Client) Circuits(
	ctx context.Context, limit int, cursor string,
) (circuits []lessor.Circuit, next string, err error) {
	return kernelPage[lessor.Circuit](ctx, c, "/circuits", "circuits", page(limit, cursor))
}

// Locks returns one page of held locks, the last that was taken first, and the cursor of the next page, "" at the
// end. A nil tenant means all.
func (c *Client) Locks(
	ctx context.Context, tenant *lessor.TenantID, limit int, cursor string,
) (locks []lessor.Lock, next string, err error) {
	q := page(limit, cursor)
	setTenant(q, tenant)
	return kernelPage[lessor.Lock](ctx, c, "/locks", "locks", q)
}

// Alerts returns one page of alerts, newest first, and the cursor of the next page, "" at the end.
func (c *Client) Alerts(ctx context.Context, f lessor.AlertFilter) (alerts []lessor.Alert, next string, err error) {
	q := page(f.Limit, f.Cursor)
	if f.Open {
		q.Set("open", "true")
	}
	return kernelPage[lessor.Alert](ctx, c, "/alerts", "alerts", q)
}

// Acknowledge notes that somebody knows of an alert, and returns it. The first who says so is remembered.
func (c *Client) Acknowledge(ctx context.Context, id lessor.AlertID) (a lessor.Alert, err error) {
	_, err = c.do(ctx, call{
		method: http.MethodPost, path: kernel + "/alerts/" + id.String() + "/acknowledge",
		body: struct{}{},
	}, &a)
	return a, err
}

// Audit returns one page of who changed what, newest first, and the cursor of the next page, "" at the end.
func (c *Client) Audit(ctx context.Context, f lessor.AuditFilter) (entries []lessor.Audited, next string, err error) {
	q := page(f.Limit, f.Cursor)
	set(q, "actor", f.Actor)
	set(q, "object", f.Object)
	return kernelPage[lessor.Audited](ctx, c, "/audit", "audit", q)
}
