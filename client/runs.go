package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"lessor"
)

// Run returns one run.
func (c *Client) Run(ctx context.Context, id lessor.JobID) (lessor.Run, error) {
	return get[lessor.Run](ctx, c, kernel+"/runs/"+id.String(), nil, maxObject)
}

// Runs returns one page of the runs that match f, newest first.
func (c *Client) Runs(ctx context.Context, f lessor.RunFilter) (runs []lessor.Run, next string, err error) {
	q := page(f.Limit, f.Cursor)
	set(q, "jobId", f.JobID)
	set(q, "status", string(f.Status))
	set(q, "traceId", f.Trace)
	setTenant(q, "tenantId", f.Tenant)
	return list[lessor.Run](ctx, c, kernel+"/runs", "runs", q)
}

// AllRuns returns all runs that match f; f.Limit is the size of a page.
func (c *Client) AllRuns(ctx context.Context, f lessor.RunFilter) iter.Seq2[lessor.Run, error] {
	return eachPage(f.Cursor, func(cursor string) ([]lessor.Run, string, error) {
		f.Cursor = cursor
		return c.Runs(ctx, f)
	})
}

// RunError returns the error to which LastErrorRef of a run refers.
func (c *Client) RunError(ctx context.Context, ref string) (lessor.RunError, error) {
	return get[lessor.RunError](ctx, c, kernel+"/errors/"+url.PathEscape(ref), nil, maxObject)
}

// Circuits returns one page of the circuits of definitions that failed lately, the most recently opened first.
func (c *Client) Circuits(
	ctx context.Context, limit int, cursor string,
) (circuits []lessor.Circuit, next string, err error) {
	return list[lessor.Circuit](ctx, c, kernel+"/circuits", "circuits", page(limit, cursor))
}

// Locks returns one page of held locks, the newest first. A nil tenant means all.
func (c *Client) Locks(
	ctx context.Context, tenant *lessor.TenantID, limit int, cursor string,
) (locks []lessor.Lock, next string, err error) {
	q := page(limit, cursor)
	setTenant(q, "tenantId", tenant)
	return list[lessor.Lock](ctx, c, kernel+"/locks", "locks", q)
}

// Alerts returns one page of alerts, newest first.
func (c *Client) Alerts(ctx context.Context, f lessor.AlertFilter) (alerts []lessor.Alert, next string, err error) {
	q := page(f.Limit, f.Cursor)
	if f.Open {
		q.Set("open", "true")
	}
	return list[lessor.Alert](ctx, c, kernel+"/alerts", "alerts", q)
}

// Acknowledge records that the caller knows of an alert, and returns it. The alert keeps its first acknowledgement.
func (c *Client) Acknowledge(ctx context.Context, id lessor.AlertID) (lessor.Alert, error) {
	return send[lessor.Alert](ctx, c, http.MethodPost, kernel+"/alerts/"+id.String()+"/acknowledge", nil)
}

// Audit returns one page of the audit log, newest first.
func (c *Client) Audit(ctx context.Context, f lessor.AuditFilter) (entries []lessor.Audited, next string, err error) {
	q := page(f.Limit, f.Cursor)
	set(q, "actor", f.Actor)
	set(q, "object", f.Object)
	return list[lessor.Audited](ctx, c, kernel+"/audit", "audit", q)
}
