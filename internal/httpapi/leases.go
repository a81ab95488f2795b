package httpapi

import (
	"context"
	"net/http"
	"time"

	"lessor"
)

// granted is the answer to a request for one lease.
type granted struct {
	Denied bool         `json:"denied"`
	Lease  lessor.Lease `json:"lease"`
	Job    lessor.Job   `json:"job"`
}

// grantedAll is the answer to a request that named max_leases.
type grantedAll struct {
	Denied bool           `json:"denied"`
	Grants []lessor.Grant `json:"grants"`
}

type leaseList struct {
	Leases     []lessor.Lease `json:"leases"`
	NextCursor *string        `json:"next_cursor"`
}

type revokeBody struct {
	Reason *string `json:"reason,omitempty"`
}

func (c *call) requestLease(r *lessor.LeaseRequest) error {
	ctx, release, err := c.poll(r.WaitMS)
	if err != nil {
		return err
	}
	defer release()
	grants, denial, err := c.api.scheduler.Request(ctx, c.caller, *r)
	if err != nil {
		return heldErr(ctx, err)
	}
	return c.answer(http.StatusOK, c.requested(grants, denial, r.View, r.MaxLeases != nil))
}

// requested is the answer to a request: a denial, or the grants as the caller wants to see them.
func (c *call) requested(grants []lessor.Grant, denial *lessor.Denial, view *string, list bool) appender {
	c.api.traces.Granted(grants)
	switch {
	case denial != nil && c.caller.Tenant != nil:
		return denied(withoutFigures(*denial))
	case denial != nil:
		return denied(*denial)
	case view != nil && *view == lessor.ViewWork:
		return workView(grants)
	case list:
		return grantedAll{Grants: grants}
	}
	return granted{Lease: grants[0].Lease, Job: grants[0].Job}
}

// maxWaitMS bounds how long a connection is kept for a waiting request; rules refuses longer waits.
const maxWaitMS = 30000

// poll holds a call that may wait for waitMS.
func (c *call) poll(waitMS *int64) (ctx context.Context, release func(), err error) {
	if waitMS == nil || *waitMS <= 0 {
		return c.r.Context(), func() {}, nil
	}
	return c.hold(c.api.polls, "poll", time.Duration(min(*waitMS, maxWaitMS))*time.Millisecond)
}

// polled answers with the result of do, which waits up to waitMS.
func polled[T any](c *call, waitMS *int64, do func(context.Context) (T, error)) error {
	ctx, release, err := c.poll(waitMS)
	if err != nil {
		return err
	}
	defer release()
	answer, err := do(ctx)
	if err != nil {
		return heldErr(ctx, err)
	}
	return c.answer(http.StatusOK, answer)
}

func (c *call) cancelled(b *lessor.CancelWait) error {
	return polled(c, b.WaitMS, func(ctx context.Context) (lessor.StoppedLeases, error) {
		return c.api.scheduler.Cancelled(ctx, c.caller, *b)
	})
}

// withoutFigures removes the figures of the whole scheduler, which include other tenants' leases, from a denial.
func withoutFigures(d lessor.Denial) lessor.Denial {
	switch d.Code {
	case lessor.NoCapacity:
		d.Reason = "No capacity"
	case lessor.NextJobTooLarge:
		d.Reason = "Next job needs more units than are available"
	case lessor.NoEligibleJob:
		d.Reason = "No eligible jobs"
	case lessor.Draining:
		d.Reason = "Draining"
	default:
		d.Reason = "Denied"
	}
	return d
}

func (c *call) heartbeat(id lessor.LeaseID, b *lessor.Heartbeat) error {
	return c.reply(c.api.scheduler.Heartbeat(c.r.Context(), c.caller, id, *b))
}

func (c *call) complete(id lessor.LeaseID, d *lessor.Completion) error {
	if err := c.api.scheduler.Complete(c.r.Context(), c.caller, id, *d); err != nil {
		return err
	}
	c.api.traces.Ended(c.r.Context(), id, *d.Status)
	return c.answer(http.StatusOK, done{true})
}

func (c *call) release(id lessor.LeaseID, r *lessor.Release) error {
	if err := c.api.scheduler.Release(c.r.Context(), c.caller, id, *r); err != nil {
		return err
	}
	c.api.traces.Ended(c.r.Context(), id, "released")
	return c.answer(http.StatusOK, done{true})
}

func (c *call) revoke(id lessor.LeaseID, b *revokeBody) error {
	reason := ""
	if b.Reason != nil {
		reason = *b.Reason
	}
	if err := c.api.scheduler.Revoke(c.r.Context(), c.caller, id, reason); err != nil {
		return err
	}
	c.api.traces.Ended(c.r.Context(), id, "revoked")
	return c.answer(http.StatusOK, done{true})
}

func (c *call) leases() error {
	leases, next, err := c.api.scheduler.Leases(c.r.Context(), c.caller, c.query.Get("worker_id"), c.limit(),
		c.query.Get("cursor"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, leaseList{leases, cursorOf(next)})
}
