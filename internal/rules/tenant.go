package rules

import "lessor"

// The limits of a policy.
const (
	maxWeight      = 10_000
	maxConcurrency = 1_000_000
)

// Policy holds the settings of a tenant, or of one of its classes.
type Policy struct {
	Tenant lessor.TenantID
	Class  string // "" = the tenant itself
	Weight int
	Cap    int // leases at one time; 0 = not set
	Paused bool
}

// SetPolicy turns a request into a policy, with defaults applied, or refuses it.
func SetPolicy(tenant lessor.TenantID, class string, ask *lessor.TenantAsk) (Policy, error) {
	var c check
	if class != "" {
		c.text("class", &class, 1, maxClass, "")
	}
	p := Policy{
		Tenant: tenant, Class: class, Weight: int(c.number("weight", ask.Weight, 1, maxWeight, 1)),
		Cap:    int(c.number("maxConcurrency", ask.MaxConcurrency, 1, maxConcurrency, 0)),
		Paused: ask.Paused != nil && *ask.Paused,
	}
	return p, c.err()
}
