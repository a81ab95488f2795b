package rules

import (
	"cmp"
	"fmt"
	"slices"

	"lessor"
)

// maxManifest bounds the definitions of one manifest.
const maxManifest = 1000

// ManifestPlan is a valid manifest.
type ManifestPlan struct {
	Module      string
	Version     string
	Tenant      lessor.TenantID
	Definitions []*Definition
	envelopes   []lessor.Envelope // of the definitions
	Prune       bool
	DryRun      bool
}

// anyTenant stands for the tenant of a manifest that names none.
const anyTenant = "00000000-0000-0000-0000-000000000001"

// Manifest checks a manifest. define turns each envelope into a definition; one without a tenant gets the manifest's.
func Manifest(m *lessor.Manifest, wall *lessor.TenantID,
	define func(e *lessor.Envelope, prefix string) (*Definition, error),
) (*ManifestPlan, error) {
	var c check
	c.require("moduleId", m.ModuleID != nil)
	c.require("tenantId", m.TenantID != nil || wall != nil)
	c.require("jobs", m.Jobs != nil)
	p := &ManifestPlan{envelopes: m.Jobs, Prune: m.Prune != nil && *m.Prune, DryRun: m.DryRun != nil && *m.DryRun}
	p.Module = c.text("moduleId", m.ModuleID, 1, maxName, "")
	p.Version = c.text("version", m.Version, 1, maxName, "")
	var err error
	if p.Tenant, err = c.owner(m.TenantID, wall); err != nil {
		return nil, err
	}
	if p.Tenant.IsZero() && wall != nil {
		p.Tenant = *wall // the manifest's is refused already
	}
	if len(m.Jobs) > maxManifest {
		c.fail("jobs", "must be at most %d, not %d", maxManifest, len(m.Jobs))
	}
	var faults Faults
	if err := faults.Add(c.err()); err != nil || len(m.Jobs) > maxManifest {
		return nil, cmp.Or(err, faults.Err())
	}
	seen := map[string]int{}
	for i := range m.Jobs {
		d, err := p.define(&m.Jobs[i], fmt.Sprintf("jobs[%d].", i), define)
		if err == nil {
			if first, twice := seen[d.ID]; twice {
				err = WrongField(fmt.Sprintf("jobs[%d].jobId", i), "is the same as that of jobs[%d]", first)
			}
			seen[d.ID] = i
			p.Definitions = append(p.Definitions, d)
		}
		if err := faults.Add(err); err != nil {
			return nil, err
		}
	}
	return p, faults.Err()
}

func (p *ManifestPlan) define(e *lessor.Envelope, prefix string,
	define func(*lessor.Envelope, string) (*Definition, error),
) (*Definition, error) {
	own := *e
	if own.TenantID == nil {
		tenant := p.Tenant.String()
		if p.Tenant.IsZero() { // the manifest's is refused already; the other fields of the job are still checked
			tenant = anyTenant
		}
		own.TenantID = &tenant
	}
	d, err := define(&own, prefix)
	if err != nil {
		return nil, err
	}
	if !p.Tenant.IsZero() && d.Tenant != p.Tenant {
		return nil, WrongField(prefix+"tenantId", "must be the manifest's (%s)", p.Tenant)
	}
	if d.Module != "" && d.Module != p.Module {
		return nil, WrongField(prefix+"moduleId", "must be the manifest's (%s)", p.Module)
	}
	d.Module, d.Version = p.Module, p.Version
	return d, nil
}

// IDs returns the ids of the manifest's definitions.
func (p *ManifestPlan) IDs() []string {
	ids := make([]string, len(p.Definitions))
	for i, d := range p.Definitions {
		ids[i] = d.ID
	}
	return ids
}

// Against returns what the manifest does to the stored definitions, by id, and which of them it removes. It refuses to
// change a definition of another tenant or module.
func (p *ManifestPlan) Against(old map[string]*Definition) (a lessor.Applied, removed []*Definition, err error) {
	a = lessor.Applied{
		Created: []string{}, Changed: []string{}, Unchanged: []string{}, Removed: []string{},
		DryRun: p.DryRun,
	}
	named := map[string]bool{}
	for i, d := range p.Definitions {
		named[d.ID] = true
		was := old[d.ID]
		if err := d.inherit(&p.envelopes[i], was); err != nil {
			return a, nil, err
		}
		switch {
		case was == nil:
			a.Created = append(a.Created, d.ID)
		case was.Module != p.Module:
			return a, nil, &lessor.Error{
				Code:   lessor.CodeConflict,
				Detail: fmt.Sprintf("definition %s belongs to %s", d.ID, moduleName(was.Module)),
			}
		case was.Same(d):
			a.Unchanged = append(a.Unchanged, d.ID)
		default:
			a.Changed = append(a.Changed, d.ID)
			if p.DryRun {
				shown := ShowDefinition(d)
				shown.NextTickAt, shown.CreatedAt, shown.UpdatedAt = was.NextTick, was.CreatedAt, was.UpdatedAt
				a.Definitions = append(a.Definitions, shown)
			}
		}
	}
	for id, d := range old {
		if p.Prune && !named[id] && d.Module == p.Module && d.Tenant == p.Tenant {
			removed = append(removed, d)
			a.Removed = append(a.Removed, id)
		}
	}
	slices.Sort(a.Removed)
	return a, removed, nil
}

func moduleName(m string) string {
	if m == "" {
		return "no module: it was stored by itself"
	}
	return "module " + m
}

// maxSchema bounds the schema of a handler.
const maxSchema = 64 << 10

// CheckHandler refuses a handler that cannot be registered.
func CheckHandler(id string, schema []byte) error {
	var c check
	c.require("schema", len(schema) > 0)
	c.size("schema", len(schema), maxSchema)
	c.text("handlerId", &id, minName, maxName, "")
	return c.err()
}

// maxHandlers bounds the handlers with a schema: every node keeps all of them compiled.
const maxHandlers = 10_000

// HandlerRoom refuses a handler beyond maxHandlers.
func HandlerRoom(known int) error {
	if known < maxHandlers {
		return nil
	}
	return &lessor.Error{
		Code:   lessor.CodeConflict,
		Detail: fmt.Sprintf("there are %d handlers with a schema already, and no more are allowed", known),
	}
}
