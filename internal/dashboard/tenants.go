package dashboard

import (
	"strconv"

	"lessor"
	"lessor/internal/token"
)

// tenantsPage lists tenants and their use of units.
type tenantsPage struct {
	Rows   []tenantRow
	Next   string
	CanAct bool
}

// tenantRow is a tenant with two shares among the tenants of the page: its share of the leased units, and the fair
// share by its weight among those with queued or leased jobs.
type tenantRow struct {
	lessor.Tenant
	Share, Fair float64
	Capped      bool
}

func (v *visit) tenants() (view, error) {
	list, next, err := v.scheduler.Tenants(v.r.Context(), v.caller, pageSize, v.r.URL.Query().Get("cursor"))
	if err != nil {
		return view{}, err
	}
	p := tenantsPage{Next: v.next(next), CanAct: v.can(token.SetTenant)}
	units, weights := 0, 0
	for _, t := range list {
		units += t.Units
		if t.Units > 0 || t.Queued > 0 {
			weights += t.Weight
		}
	}
	for _, t := range list {
		row := tenantRow{Tenant: t, Share: share(t.Units, units)}
		row.Capped = t.MaxConcurrency != nil && t.Leases >= *t.MaxConcurrency
		if t.Units > 0 || t.Queued > 0 {
			row.Fair = share(t.Weight, weights)
		}
		p.Rows = append(p.Rows, row)
	}
	return view{"Tenants", "tenants", p}, nil
}

// setTenant stores weight, cap and pause together, as the form shows them.
func (v *visit) setTenant() error {
	id, err := readTenant(v.r.PathValue("id"))
	if err != nil {
		return err
	}
	ask := lessor.TenantAsk{Paused: lessor.SetTo(v.form.Get("paused") != "")}
	if ask.Weight, err = number(v.form.Get("weight"), "weight"); err != nil {
		return err
	}
	if ask.MaxConcurrency, err = number(v.form.Get("cap"), "maxConcurrency"); err != nil {
		return err
	}
	if _, err := v.scheduler.SetTenant(v.r.Context(), v.caller, *id, ask); err != nil {
		return err
	}
	return v.back("/tenants", "set")
}

// number reads a field of a form; an empty one resets the setting.
func number(s, field string) (lessor.Change[int64], error) {
	if s == "" {
		return lessor.Change[int64]{Reset: true}, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return lessor.Change[int64]{}, &lessor.Error{
			Code: lessor.CodeInvalidValue, Detail: field + " must be a whole number",
		}
	}
	return lessor.SetTo(n), nil
}
