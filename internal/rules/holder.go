package rules

import (
	"slices"
	"strings"

	"lessor"
)

// Holder is a worker as the holder of leases. Tenants name their workers as they like: the name alone is nobody.
type Holder struct {
	Space  lessor.TenantID // the tenant of the token with which it calls; zero = bound to none, or no token
	Worker string
}

// Hand is who calls about a lease.
type Hand struct {
	Holder
	Token lessor.TokenID // with which it calls; zero = none
	// Keyed: the id of a lease is key enough, as it is for the token of a worker, which is not shown the ids of others. An
	// operator sees every id, and so may end as its worker only what it took itself.
	Keyed bool
}

// Holder returns who holds the lease.
func (h *Held) Holder() Holder {
	if h.Bound {
		return Holder{Space: h.Tenant, Worker: h.Worker}
	}
	return Holder{Worker: h.Worker}
}

// heldBy reports whether by may speak for the worker of the lease.
func (h *Held) heldBy(by Hand) bool {
	switch {
	case h.Worker != by.Worker:
		return false
	case h.Taker == "": // granted by a release that did not note with which token
		return true
	}
	return h.Holder() == by.Holder && (h.Token == by.Token || by.Keyed)
}

// The actors of the record that are no tokens.
const (
	ActorScheduler = "scheduler" // what the scheduler did by itself
	ActorRecovery  = "recovery"  // what the monitor of sentinels did
	ActorLocal     = "local"     // a caller without a token
	ActorAnonymous = "anonymous" // a caller whom nobody asked
	ActorDashboard = "dashboard" // the pages, for themselves
)

// ActorOf is how the record names a worker that called with a token: the token's name, then its own. A worker chooses its name; its
// token's it cannot choose.
func ActorOf(taker, worker string) string {
	if taker == "" {
		return worker
	}
	return taker + "/" + worker
}

// WorkerOf is the worker whom ActorOf named.
func WorkerOf(actor string) string {
	if _, worker, ok := strings.Cut(actor, "/"); ok {
		return worker
	}
	return actor
}

// Nameable reports whether a token of this name is told apart in the record from every other actor.
func Nameable(name string) bool {
	ours := []string{ActorScheduler, ActorRecovery, ActorLocal, ActorAnonymous, ActorDashboard}
	return name != "" && !strings.Contains(name, "/") && !slices.Contains(ours, name)
}
