package rules

import (
	"strings"

	"lessor"
)

// The limits of a policy.
const (
	maxWeight      = 10_000
	maxConcurrency = 1_000_000
	maxTenantName  = 200
)

// Policy holds the settings of a tenant, or of one of its classes.
type Policy struct {
	Tenant lessor.TenantID
	Class  string // "" = the tenant itself
	Weight int
	Cap    int // leases at one time; 0 = not set
	Paused bool
	Name   string // for people; "" = none
}

// Change returns the policy after a request, or refuses it. What the request leaves out stays as it is. A cap that was
// read as the default and is sent back still follows the default, which is defaultCap.
func (p Policy) Change(ask *lessor.TenantAsk, defaultCap int) (Policy, error) {
	var c check
	if p.Class != "" {
		c.text("class", &p.Class, 1, maxClass, "")
	}
	if ask.TenantID != nil && !strings.EqualFold(*ask.TenantID, p.Tenant.String()) {
		c.fail("tenantId", "must equal the id in the path")
	}
	if ask.Class != nil && *ask.Class != p.Class {
		c.fail("class", "must equal the class in the path")
	}
	changed(&p.Weight, ask.Weight, 1, func(v *int64) int { return int(c.number("weight", v, 1, maxWeight, 0)) })
	most := ask.MaxConcurrency
	if d := ask.MaxConcurrencyDefault; d != nil && *d && most.To != nil && *most.To == int64(defaultCap) {
		most = lessor.Change[int64]{Reset: true}
	}
	changed(&p.Cap, most, 0, func(v *int64) int {
		return int(c.number("maxConcurrency", v, 1, maxConcurrency, 0))
	})
	changed(&p.Paused, ask.Paused, false, func(v *bool) bool { return *v })
	changed(&p.Name, ask.Name, "", func(v *string) string { return c.text("name", v, 1, maxTenantName, "") })
	return p, c.err()
}

// changed applies a change to a setting whose default is def; read checks the new value.
func changed[T, V any](setting *T, ch lessor.Change[V], def T, read func(*V) T) {
	switch {
	case ch.To != nil:
		*setting = read(ch.To)
	case ch.Reset:
		*setting = def
	}
}
