package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// Policies implements scheduler.KernelView.
func (v *view) Policies(ctx context.Context) (ps []rules.Policy, err error) {
	err = query(v.conn, readPolicies, nil, func(r *row) error {
		ps = append(ps, rules.Policy{
			Tenant: lessor.TenantID{UUID: r.id()}, Class: r.text(), Weight: int(r.int()), Cap: int(r.int()), Paused: r.flag(),
		})
		return nil
	})
	return ps, readFault(ctx, "read policies", err)
}

const readPolicies = "select tenant, class, weight, cap, paused from policy order by tenant, class"

// SavePolicy implements scheduler.KernelTx.
func (t *tx) SavePolicy(_ context.Context, p rules.Policy) error {
	return t.do("save policy", func() error {
		return query(t.conn, "replace into policy (tenant, class, weight, cap, paused) values (?, ?, ?, ?, ?)", func(a *args) {
			a.id(p.Tenant.UUID)
			a.text(p.Class)
			a.int(int64(p.Weight))
			a.int(int64(p.Cap))
			a.flag(p.Paused)
		}, nil)
	})
}
