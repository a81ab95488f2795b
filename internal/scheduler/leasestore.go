package scheduler

import (
	"lessor"
	"lessor/internal/rules"
)

// RequestRef names a lease request that may be repeated.
type RequestRef struct {
	rules.Holder
	RequestID string
}

// LeaseEnd is how a lease that is over ended.
type LeaseEnd struct {
	Worker  string
	Tenant  lessor.TenantID
	Outcome rules.Outcome
	Said    rules.Said
	Reason  string
}

// LeaseQuery selects live leases, newest first, after the place After: of one worker or of all (""), of one tenant, and those that
// were taken with one token.
type LeaseQuery struct {
	Worker string
	Tenant *lessor.TenantID
	Token  *lessor.TokenID
	After  *LeasePlace
	Limit  int
}

// LeasePlace is where a lease stands in a list that is newest first: two numbers of the store, in the order of which the list is. Callers
// see it sealed. No lease takes the place of another, so a list goes on behind one that has ended.
type LeasePlace struct{ A, B int64 }

// ListedLease is a live lease in a list.
type ListedLease struct {
	*rules.Held
	Place LeasePlace
}
