package scheduler

import (
	"lessor"
	"lessor/internal/rules"
)

// Caller identifies the caller of an operation. Every operation of the API takes one.
type Caller struct {
	// Actor is how the record names the caller: a token's name, or "local" for tokenless calls.
	Actor string
	// Tenant restricts the caller to one tenant: it sees, changes and leases only this tenant's jobs. nil = no
	// restriction.
	Tenant *lessor.TenantID
	// Token is the token that was sent; zero = none.
	Token lessor.TokenID
	// Worker says that the token is a worker's: lists show it only the leases that were taken with this token. To use a
	// lease it needs only the id, so a worker whose token was replaced can go on.
	Worker bool
	// TraceID is the W3C trace id of the call, 32 hexadecimal digits, as its answer and the audit show it; "" outside a
	// call.
	TraceID string
	// Traced says that the caller sent TraceID: the jobs that it submits belong to that trace.
	Traced bool
	// IfMatch lists the versions of a definition, tenant or class that the call may change, as rules.Match reads it.
	IfMatch string
	// IfNoneMatch lists the versions that the call must not change, as rules.Spare reads it.
	IfNoneMatch string
	// Agent is the program that calls (User-Agent), for the list of workers.
	Agent string
}

// sees reports whether the caller may know of something that belongs to tenant t.
func (c *Caller) sees(t lessor.TenantID) bool { return c.Tenant == nil || *c.Tenant == t }

// space is the tenant in which the caller's worker and request names are unique; zero is shared by all callers that are
// bound to no tenant.
func (c *Caller) space() lessor.TenantID {
	if c.Tenant == nil {
		return lessor.TenantID{}
	}
	return *c.Tenant
}

// holder identifies a worker that this caller acts for.
func (c *Caller) holder(worker string) rules.Holder {
	return rules.Holder{Space: c.space(), Worker: worker}
}

// hand identifies a caller that acts for a worker.
func (c *Caller) hand(worker string) rules.Hand {
	return rules.Hand{Holder: c.holder(worker), Token: c.Token, Keyed: c.Worker}
}

// Submitted is the answer to one submission.
type Submitted struct {
	Job      lessor.Job
	Existing bool // the idempotency key was known: this is the first job
}

// LeaseAnswer is the answer to one lease of a batched call. Err is a refusal (*lessor.Error) or nil.
type LeaseAnswer struct {
	LeaseID string
	Beat    lessor.HeartbeatAnswer // of a heartbeat that was accepted
	Err     error
}

// Streamed is one entry of the stream of all records, or a gap: entries were left out here.
type Streamed struct {
	ID    uint64
	Event lessor.StreamEvent
	Gap   bool
}
