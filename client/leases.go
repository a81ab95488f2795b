package client

import (
	"context"
	"crypto/rand"
	"iter"
	"net/http"
	"time"

	"lessor"
)

// LeaseAnswer is the answer to one lease of a batched call.
type LeaseAnswer struct {
	LeaseID lessor.LeaseID
	Beat    lessor.HeartbeatAnswer // of a heartbeat that was accepted
	Err     error                  // a *lessor.Error, or nil
}

// Request requests leases and returns at least one grant, or a denial, or an error. If r has no request id, Request
// adds one, so that a repeated call returns the same grants instead of new ones.
func (c *Client) Request(ctx context.Context, r lessor.LeaseRequest) ([]lessor.Grant, *lessor.Denial, error) {
	if r.RequestID == nil {
		r.RequestID = new(rand.Text())
	}
	var hold time.Duration
	if r.WaitMS != nil {
		hold = time.Duration(*r.WaitMS) * time.Millisecond
	}
	var answer requestAnswer
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: scheduler + "/leases/request", body: r, safe: true, hold: hold, limit: maxList,
	}, &answer)
	if err != nil {
		return nil, nil, err
	}
	return answer.result(r.WorkerID, r.View)
}

// TurnAnswer is the answer to a turn: one answer for each completion and heartbeat, in the same order, and the grants
// or the denial of the request.
type TurnAnswer struct {
	Complete, Heartbeat []LeaseAnswer
	Grants              []lessor.Grant
	Denial              *lessor.Denial
}

// Turn completes, extends and requests leases of one worker in one call and one commit. Each part of t may be left out.
// If its request has no request id, Turn adds one. A server of an older release answers lessor.CodeRouteNotFound.
func (c *Client) Turn(ctx context.Context, t lessor.Turn) (TurnAnswer, error) {
	var hold time.Duration
	if t.Request != nil {
		r := *t.Request
		t.Request = &r
		if r.RequestID == nil {
			r.RequestID = new(rand.Text())
		}
		if r.WaitMS != nil {
			hold = time.Duration(*r.WaitMS) * time.Millisecond
		}
	}
	var answer turnAnswer
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: scheduler + "/leases/turn", body: t, safe: true, hold: hold, limit: maxList,
	}, &answer)
	if err != nil {
		return TurnAnswer{}, err
	}
	a := TurnAnswer{Complete: leaseAnswers(answer.Complete), Heartbeat: leaseAnswers(answer.Heartbeat)}
	if t.Request != nil {
		a.Grants, a.Denial, err = answer.Request.result(t.WorkerID, t.Request.View)
	}
	return a, err
}

// Heartbeat keeps a lease alive.
func (c *Client) Heartbeat(ctx context.Context, id lessor.LeaseID, b lessor.Heartbeat) (lessor.HeartbeatAnswer, error) {
	var answer beatAnswer
	_, err := c.do(ctx, call{method: http.MethodPost, path: leasePath(id, "/heartbeat"), body: b, safe: true}, &answer)
	return answer.HeartbeatAnswer, err
}

// Append appends 1 to 100 entries to the journal of a leased job, all or none, and keeps the lease alive. A repeated
// call gets the same answer.
func (c *Client) Append(
	ctx context.Context, id lessor.LeaseID, a lessor.JournalAppend,
) (lessor.JournalAnswer, error) {
	var answer journalAnswer
	_, err := c.do(ctx, call{method: http.MethodPost, path: leasePath(id, "/journal"), body: a, safe: true}, &answer)
	return answer.JournalAnswer, err
}

// HeartbeatAll keeps 1 to 1000 leases of one worker alive and returns one answer per lease, in the same order.
func (c *Client) HeartbeatAll(ctx context.Context, worker string, ids []lessor.LeaseID) ([]LeaseAnswer, error) {
	return c.batch(ctx, "/leases/heartbeat", struct {
		WorkerID string           `json:"worker_id"`
		LeaseIDs []lessor.LeaseID `json:"lease_ids"`
	}{worker, ids})
}

// Cancelled waits, up to 30 s, until jobs of a worker are cancelled or get a message, or its leases are ended by
// others, and returns the leases. It returns each lease once, to one call; the answers to its heartbeats say the same
// at any time.
func (c *Client) Cancelled(ctx context.Context, worker string, wait time.Duration) (lessor.StoppedLeases, error) {
	return c.cancelled(ctx, lessor.CancelWait{WorkerID: &worker}, wait)
}

// CancelledLease is Cancelled for one lease of the worker.
func (c *Client) CancelledLease(
	ctx context.Context, worker string, id lessor.LeaseID, wait time.Duration,
) (lessor.StoppedLeases, error) {
	return c.cancelled(ctx, lessor.CancelWait{WorkerID: &worker, LeaseID: new(id.String())}, wait)
}

func (c *Client) cancelled(
	ctx context.Context, w lessor.CancelWait, wait time.Duration,
) (answer lessor.StoppedLeases, err error) {
	w.WaitMS = new(wait.Milliseconds())
	_, err = c.do(ctx, call{
		method: http.MethodPost, path: scheduler + "/leases/cancelled", body: w, safe: true, hold: wait,
	}, &answer)
	return answer, err
}

// Complete ends an attempt: completed, failed or cancelled. A repeated call gets the same answer.
func (c *Client) Complete(ctx context.Context, id lessor.LeaseID, d lessor.Completion) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: leasePath(id, "/complete"), body: d, safe: true}, nil)
	return err
}

// CompleteAll ends 1 to 1000 attempts of one worker and returns one answer per lease, in the same order.
func (c *Client) CompleteAll(ctx context.Context, worker string, ds []lessor.LeaseCompletion) ([]LeaseAnswer, error) {
	return c.batch(ctx, "/leases/complete", struct {
		WorkerID string                   `json:"worker_id"`
		Leases   []lessor.LeaseCompletion `json:"leases"`
	}{worker, ds})
}

// Release gives a lease back: the job returns to its place in the queue and the attempt does not count.
func (c *Client) Release(ctx context.Context, id lessor.LeaseID, r lessor.Release) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: leasePath(id, "/release"), body: r, safe: true}, nil)
	return err
}

// Revoke takes a lease away from its worker: the attempt fails and is retried as usual.
func (c *Client) Revoke(ctx context.Context, id lessor.LeaseID, reason string) error {
	body := map[string]string{}
	if reason != "" {
		body["reason"] = reason
	}
	_, err := c.do(ctx, call{method: http.MethodPost, path: leasePath(id, "/revoke"), body: body}, nil)
	return err
}

// Leases returns one page of the live leases, newest first, of one worker or of all ("").
func (c *Client) Leases(
	ctx context.Context, worker string, limit int, cursor string,
) (leases []lessor.Lease, next string, err error) {
	q := page(limit, cursor)
	set(q, "worker_id", worker)
	return list[lessor.Lease](ctx, c, scheduler+"/leases", "leases", q)
}

// AllLeases returns all live leases of one worker or of all ("").
func (c *Client) AllLeases(ctx context.Context, worker string) iter.Seq2[lessor.Lease, error] {
	return eachPage("", func(cursor string) ([]lessor.Lease, string, error) {
		return c.Leases(ctx, worker, maxPage, cursor)
	})
}

// batch makes a call with one answer per lease. Both batched calls are safe to repeat.
func (c *Client) batch(ctx context.Context, path string, body any) ([]LeaseAnswer, error) {
	var answer resultsAnswer
	_, err := c.do(ctx, call{method: http.MethodPost, path: scheduler + path, body: body, safe: true}, &answer)
	if err != nil {
		return nil, err
	}
	return leaseAnswers(answer.Results), nil
}

func leasePath(id lessor.LeaseID, rest string) string {
	return scheduler + "/leases/" + id.String() + rest
}
