package scheduler

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/lanes"
	"lessor/internal/rules"
)

var errOtherTenant = &lessor.Error{Code: lessor.CodeForbidden, Detail: "this token is for another tenant"}

// within returns the tenant that a call is about: the caller's own if it is bound to one, else the one that it names,
// if any.
func (c Caller) within(asked *lessor.TenantID) (*lessor.TenantID, error) {
	if c.Tenant == nil {
		return asked, nil
	}
	if asked != nil && *asked != *c.Tenant {
		return nil, errOtherTenant
	}
	return c.Tenant, nil
}

// policy returns what a stored policy means: a cap that is not set is the default.
func (s *Scheduler) policy(p rules.Policy) lanes.Policy {
	v := lanes.Policy{Weight: p.Weight, Cap: p.Cap, Paused: p.Paused, Name: p.Name}
	if p.Cap == 0 && p.Class == "" {
		v.Cap, v.Unset = s.tenantPolicy(p.Tenant).Cap, true
	}
	return v
}

// applyPolicy applies a policy to the order of turns.
func (l *loop) applyPolicy(f *fold.Fold, p rules.Policy) {
	if p.Class == "" {
		f.Index.SetTenant(p.Tenant, l.policy(p))
		return
	}
	f.Index.SetClass(p.Tenant, p.Class, l.policy(p))
}

// setPolicy changes the policy of a tenant or a class, under the gate, so that every grant after the commit obeys it.
func (s *Scheduler) setPolicy(
	ctx context.Context, c Caller, of rules.Policy, ask *lessor.TenantAsk, object string, show func(l *loop) any,
) error {
	if !c.sees(of.Tenant) {
		return errOtherTenant
	}
	return s.change(ctx, c, func(ctx context.Context, p *pass) error {
		if err := p.gate(ctx); err != nil {
			return err
		}
		all, err := p.tx.Policies(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(p rules.Policy) bool { return p.Tenant == of.Tenant && p.Class == of.Class })
		if i >= 0 {
			of = all[i]
		}
		before := show(p.l)
		if err := c.matchesVersion(rules.VersionOf(before)); err != nil {
			return err
		}
		next, err := of.Change(ask, p.l.policy(rules.Policy{Tenant: of.Tenant, Class: of.Class}).Cap)
		if err != nil || i >= 0 && next == of {
			return err
		}
		p.l.applyPolicy(p.l.fold, next) // if the commit fails, the fold is rebuilt
		p.audit(c, object+".changed", objectOf(next), before, show(p.l))
		p.l.fold.ChangeSettings()
		return p.tx.SavePolicy(ctx, next)
	})
}

func objectOf(p rules.Policy) string {
	if p.Class == "" {
		return "tenant/" + p.Tenant.String()
	}
	return "tenant/" + p.Tenant.String() + "/class/" + p.Class
}

// SetTenant changes a tenant's name, weight, cap and pause.
func (s *Scheduler) SetTenant(
	ctx context.Context, c Caller, id lessor.TenantID, ask lessor.TenantAsk,
) (shown lessor.Tenant, err error) {
	err = s.setPolicy(ctx, c, rules.Policy{Tenant: id, Weight: 1}, &ask, "tenant", func(l *loop) any {
		shown = showTenant(l.fold.Index.Tenant(id))
		return shown
	})
	return shown, err
}

// SetClass changes the name, weight, cap and pause of a tenant's fairness class.
func (s *Scheduler) SetClass(
	ctx context.Context, c Caller, id lessor.TenantID, class string, ask lessor.TenantAsk,
) (shown lessor.Class, err error) {
	err = s.setPolicy(ctx, c, rules.Policy{Tenant: id, Class: class, Weight: 1}, &ask, "class", func(l *loop) any {
		shown = l.class(id, class)
		return shown
	})
	return shown, err
}

// Tenants lists tenants by id, the largest first, and the cursor of the next page ("" at the end). A tenant has no time
// of its own: ids that are made by time are newest first then.
func (s *Scheduler) Tenants(ctx context.Context, c Caller, limit int, after string) ([]lessor.Tenant, string, error) {
	if err := rules.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	var all []lanes.Account
	err := s.read(ctx, c, func(l *loop) {
		if c.Tenant != nil {
			all = []lanes.Account{l.fold.Index.Tenant(*c.Tenant)}
			return
		}
		all = l.fold.Index.Tenants()
	})
	if err != nil {
		return nil, "", err
	}
	newest := func(a, b lessor.UUID) int { return bytes.Compare(b[:], a[:]) }
	slices.SortFunc(all, func(a, b lanes.Account) int { return newest(a.Tenant.UUID, b.Tenant.UUID) })
	if after != "" {
		u, err := lessor.ParseUUID(after)
		if err != nil {
			return nil, "", rules.BadCursor()
		}
		i, found := slices.BinarySearchFunc(all, u, func(a lanes.Account, u lessor.UUID) int {
			return newest(a.Tenant.UUID, u)
		})
		if found {
			i++
		}
		all = all[i:]
	}
	page, next := cut(all, limit, func(a lanes.Account) string { return a.Tenant.String() })
	return each(page, showTenant), next, nil
}

// Tenant returns one tenant; one that was never seen has the defaults.
func (s *Scheduler) Tenant(ctx context.Context, c Caller, id lessor.TenantID) (t lessor.Tenant, err error) {
	if !c.sees(id) {
		return t, errOtherTenant
	}
	err = s.read(ctx, c, func(l *loop) { t = showTenant(l.fold.Index.Tenant(id)) })
	return t, err
}

// Classes lists the fairness classes of a tenant by name.
func (s *Scheduler) Classes(ctx context.Context, c Caller, id lessor.TenantID) (list []lessor.Class, err error) {
	if !c.sees(id) {
		return nil, errOtherTenant
	}
	err = s.read(ctx, c, func(l *loop) { list = each(l.fold.Index.Classes(id), showClass) })
	slices.SortFunc(list, func(a, b lessor.Class) int { return cmp.Compare(a.Class, b.Class) })
	return list, err
}

// Class returns one class of a tenant; one that was never seen has the defaults.
func (s *Scheduler) Class(
	ctx context.Context, c Caller, id lessor.TenantID, class string,
) (shown lessor.Class, err error) {
	if !c.sees(id) {
		return shown, errOtherTenant
	}
	err = s.read(ctx, c, func(l *loop) { shown = l.class(id, class) })
	return shown, err
}

func (l *loop) class(id lessor.TenantID, class string) lessor.Class {
	for _, a := range l.fold.Index.Classes(id) {
		if a.Class == class {
			return showClass(a)
		}
	}
	return showClass(lanes.Account{Tenant: id, Class: class})
}

func showTenant(a lanes.Account) lessor.Tenant {
	return lessor.Tenant{
		TenantID: a.Tenant, Name: nameOf(a.Policy), Weight: max(1, a.Policy.Weight), MaxConcurrency: capOf(a.Policy),
		MaxConcurrencyDefault: a.Policy.Unset, Paused: a.Policy.Paused,
		Leases: a.Running, Units: a.Units, Queued: a.Queued,
	}
}

func showClass(a lanes.Account) lessor.Class {
	return lessor.Class{
		TenantID: a.Tenant, Class: a.Class, Name: nameOf(a.Policy), Weight: max(1, a.Policy.Weight),
		MaxConcurrency: capOf(a.Policy), Paused: a.Policy.Paused, Leases: a.Running, Queued: a.Queued,
	}
}

// capOf is a cap as callers see it: null when there is none.
func capOf(p lanes.Policy) *int {
	if p.Cap == 0 {
		return nil
	}
	return &p.Cap
}

func nameOf(p lanes.Policy) *string {
	if p.Name == "" {
		return nil
	}
	return &p.Name
}
