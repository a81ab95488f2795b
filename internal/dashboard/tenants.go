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
	Form        tenantForm
}

// tenantForm is what the fields of a tenant's settings show.
type tenantForm struct {
	Weight, Cap string
	Paused      bool
}

// tenantForm returns the fields with the stored settings, or with what the visitor typed if that was refused.
func (v *visit) tenantForm(t lessor.Tenant) tenantForm {
	if p := v.problem; p != nil && p.path == "/tenants/"+t.TenantID.String() {
		return tenantForm{p.typed.Get("weight"), p.typed.Get("cap"), p.typed.Get("paused") != ""}
	}
	f := tenantForm{Weight: strconv.Itoa(t.Weight), Paused: t.Paused}
	if t.MaxConcurrency != nil && !t.MaxConcurrencyDefault {
		f.Cap = strconv.Itoa(*t.MaxConcurrency)
	}
	return f
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
		row := tenantRow{Tenant: t, Share: share(t.Units, units), Form: v.tenantForm(t)}
		row.Capped = t.MaxConcurrency != nil && t.Leases >= *t.MaxConcurrency
		if t.Units > 0 || t.Queued > 0 {
			row.Fair = share(t.Weight, weights)
		}
		p.Rows = append(p.Rows, row)
	}
	return view{"Tenants", "tenants", p}, nil
}

// setTenant stores weight, cap and pause together, as the form shows them. An empty cap is the default.
func (v *visit) setTenant() error {
	id, err := readTenant(v.r.PathValue("id"))
	if err != nil {
		return err
	}
	ask := lessor.TenantAsk{Paused: lessor.SetTo(v.form.Get("paused") != "")}
	if ask.Weight, err = number(v.form.Get("weight"), "weight"); err != nil {
		return err
	}
	if ask.MaxConcurrency, err = number(v.form.Get("cap"), "cap"); err != nil {
		return err
	}
	if _, err := v.scheduler.SetTenant(v.r.Context(), v.caller, *id, ask); err != nil {
		return err
	}
	return v.back("/tenants", outcome{"set", "tenant " + id.String(), "/jobs?tenant_id=" + id.String()})
}

// number reads a field of a form; an empty one resets the setting.
func number(s, field string) (lessor.Change[int64], error) {
	if s == "" {
		return lessor.Change[int64]{Reset: true}, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return lessor.Change[int64]{}, &lessor.Error{
			Code: lessor.CodeInvalidValue, Detail: "the " + field + " must be a whole number",
		}
	}
	return lessor.SetTo(n), nil
}
