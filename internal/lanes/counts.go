package lanes

import (
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// Leased returns the units of all leases.
func (x *Index) Leased() int { return x.units }

// Leases returns how many leases there are.
func (x *Index) Leases() int { return x.leases }

// Depth returns how many jobs are queued, by priority.
func (x *Index) Depth() [lessor.Priorities]int { return x.depth }

// Account is what a tenant or a class may have, and has.
type Account struct {
	Tenant  lessor.TenantID
	Class   string // "" = the tenant itself
	Policy  Policy
	Running int // leases
	Units   int // of a tenant's leases
	Queued  int
}

// Tenants returns the accounts of all tenants that were ever seen or set, in no order.
func (x *Index) Tenants() []Account {
	all := make([]Account, 0, len(x.tenants))
	for _, t := range x.tenants {
		all = append(all, t.account())
	}
	return all
}

// Tenant returns the account of one tenant, as it is or would be.
func (x *Index) Tenant(id lessor.TenantID) Account {
	if t := x.tenants[id]; t != nil {
		return t.account()
	}
	return Account{Tenant: id, Policy: x.tenantPolicy(id)}
}

func (t *tenant) account() Account {
	return Account{Tenant: t.id, Policy: t.policy, Running: t.running, Units: t.units, Queued: t.queued}
}

// Classes returns the accounts of all classes of a tenant that were ever seen or set, in no order.
func (x *Index) Classes(id lessor.TenantID) (all []Account) {
	t := x.tenants[id]
	for k, c := range x.classes {
		if k.tenant == t {
			all = append(all, Account{
				Tenant: id, Class: k.name, Policy: c.policy, Running: c.running, Queued: c.queued,
			})
		}
	}
	return all
}

// Waiting reports whether a job of a definition is queued.
func (x *Index) Waiting(id lessor.TenantID, definition string) bool {
	d := x.definitions[named{x.tenants[id], definition}]
	return d != nil && slices.ContainsFunc(d.lanes, func(l *lane) bool { return l.line != nil })
}

// Counts is all that an index counts, without what is zero. Two indexes of the same tables have equal Counts.
type Counts struct {
	Depth   [lessor.Priorities]int
	Leases  int
	Units   int
	Lanes   map[rules.LaneID]int // queued
	Tenants map[lessor.TenantID]int
	Classes map[Owned]int
	Locks   map[Owned]int
}

// Owned is the name of a class or of a lock key, with whose it is.
type Owned struct {
	Tenant lessor.TenantID
	Name   string
}

// Counts returns all counts, for the check that they have not drifted from the tables. It looks at every lane.
func (x *Index) Counts() Counts {
	c := Counts{
		Depth: x.depth, Leases: x.leases, Units: x.units,
		Lanes: map[rules.LaneID]int{}, Tenants: map[lessor.TenantID]int{},
		Classes: map[Owned]int{}, Locks: map[Owned]int{},
	}
	for _, l := range x.lanes.items {
		if l != nil && l.line != nil { // each is there twice
			c.Lanes[l.id] = l.line.n
		}
	}
	for id, t := range x.tenants {
		if t.running != 0 {
			c.Tenants[id] = t.running
		}
	}
	for k, v := range x.classes {
		if v.running != 0 {
			c.Classes[Owned{k.tenant.id, k.name}] = v.running
		}
	}
	for k, v := range x.locks {
		if v.holders != 0 {
			c.Locks[Owned{k.tenant.id, k.name}] = v.holders
		}
	}
	return c
}
