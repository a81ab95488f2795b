package lanes

import "lessor"

// Policy is what an operator set for a tenant or a class.
type Policy struct {
	Weight int  // of its share; 0 means 1
	Cap    int  // leases at one time; 0 means no limit
	Unset  bool // Cap is the default
	Paused bool
	Name   string // for people
}

// open reports whether a tenant or class with so many leases may have one more.
func (p *Policy) open(running int) bool { return !p.Paused && !p.full(running) }

func (p *Policy) full(running int) bool { return p.Cap > 0 && running >= p.Cap }

// tenant is the owner of jobs.
type tenant struct {
	id      lessor.TenantID
	policy  Policy
	running int // leases; below zero while an end has arrived before its grant
	units   int // of these leases
	queued  int
	shares  [lessor.Priorities]*share
}

func (t *tenant) open() bool { return t.policy.open(t.running) }

// class is a fairness class of a tenant.
type class struct {
	name    string
	policy  Policy
	running int
	queued  int
	shares  [lessor.Priorities]*classShare
}

func (c *class) open() bool { return c.policy.open(c.running) }

// named is the name of something that belongs to one tenant.
type named struct {
	tenant *tenant
	name   string
}

// SetTenant changes a tenant's policy. Leases over a lowered cap stay; only grants stop.
func (x *Index) SetTenant(id lessor.TenantID, p Policy) {
	t, known := x.tenants[id]
	if !known {
		x.newTenant(id, p)
		return
	}
	t.policy = p
	x.placeTenant(t)
}

// SetClass changes the policy of one class of a tenant.
func (x *Index) SetClass(id lessor.TenantID, name string, p Policy) {
	c := x.class(x.tenant(id), name)
	c.policy = p
	x.placeClass(c)
}

// SetDefinition blocks the jobs of a definition (it is paused, or its circuit is open) or lets them go.
func (x *Index) SetDefinition(id lessor.TenantID, name string, blocked bool) {
	d := x.definition(x.tenant(id), name)
	if d.blocked == blocked {
		return
	}
	d.blocked = blocked
	for _, l := range d.lanes {
		x.placeLane(l)
	}
}

func (x *Index) tenant(id lessor.TenantID) *tenant {
	if t, known := x.tenants[id]; known {
		return t
	}
	return x.newTenant(id, x.tenantPolicy(id))
}

func (x *Index) newTenant(id lessor.TenantID, p Policy) *tenant {
	t := &tenant{id: id, policy: p}
	x.tenants[id] = t
	return t
}

func (x *Index) class(t *tenant, name string) *class {
	c, known := x.classes[named{t, name}]
	if !known {
		c = &class{name: name}
		x.classes[named{t, name}] = c
	}
	return c
}

func (x *Index) definition(t *tenant, name string) *definition {
	d, known := x.definitions[named{t, name}]
	if !known {
		d = &definition{name: name}
		x.definitions[named{t, name}] = d
	}
	return d
}

func (x *Index) lock(t *tenant, key string) *lock {
	k, known := x.locks[named{t, key}]
	if !known {
		k = &lock{key: key}
		x.locks[named{t, key}] = k
	}
	return k
}
