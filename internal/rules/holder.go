package rules

import (
	"slices"
	"strings"

	"lessor"
)

// Holder identifies a worker. Tenants choose the names of their workers, so a name alone identifies none.
type Holder struct {
	Space  lessor.TenantID // the tenant to which its token is restricted; zero = none
	Worker string
}

// Hand is the caller of a request about a lease.
type Hand struct {
	Holder
	Token lessor.TokenID // zero = none
	// Keyed says that knowing the id of a lease is enough. That holds for a worker's token, which does not see the ids
	// of others. An operator sees every id, and may act as the worker only for leases that it took itself.
	Keyed bool
}

// Holder returns the holder of the lease.
func (h *Held) Holder() Holder {
	if h.Bound {
		return Holder{Space: h.Tenant, Worker: h.Worker}
	}
	return Holder{Worker: h.Worker}
}

// heldBy reports whether by may act as the worker of the lease.
func (h *Held) heldBy(by Hand) bool {
	switch {
	case h.Worker != by.Worker:
		return false
	case h.Taker == "": // granted by a version that did not record the token
		return true
	}
	return h.Holder() == by.Holder && (h.Token == by.Token || by.Keyed)
}

// The actors of the record that are no tokens.
const (
	ActorScheduler = "scheduler"
	ActorRecovery  = "recovery"  // the monitor of sentinels
	ActorLocal     = "local"     // a caller without a token
	ActorAnonymous = "anonymous" // a caller of a server without authentication
	ActorDashboard = "dashboard" // the dashboard's own calls
)

// ActorOf returns the actor of a worker's call: the name of its token, which it cannot choose, and its own name.
func ActorOf(taker, worker string) string {
	if taker == "" {
		return worker
	}
	return taker + "/" + worker
}

// WorkerOf returns the worker in an actor that ActorOf made.
func WorkerOf(actor string) string {
	if _, worker, ok := strings.Cut(actor, "/"); ok {
		return worker
	}
	return actor
}

// Nameable reports whether a token may have this name: no other actor in the record looks the same.
func Nameable(name string) bool {
	ours := []string{ActorScheduler, ActorRecovery, ActorLocal, ActorAnonymous, ActorDashboard}
	return name != "" && !strings.Contains(name, "/") && !slices.Contains(ours, name)
}
