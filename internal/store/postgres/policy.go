package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

var (
	readPolicies = sql("select tenant, class, weight, cap, paused from policy order by tenant, class")
	savePolicy   = sql("insert into policy (tenant, class, weight, cap, paused) values ($1::uuid, $2::text, $3::bigint, $4::bigint, $5::boolean)" +
		" on conflict (tenant, class) do update set weight = excluded.weight, cap = excluded.cap, paused = excluded.paused")
)

// Policies implements scheduler.KernelView.
func (v *view) Policies(context.Context) (ps []rules.Policy, err error) {
	err = v.query("read policies", readPolicies, func(r *row) error {
		ps = append(ps, rules.Policy{
			Tenant: lessor.TenantID{UUID: r.id()}, Class: r.text(), Weight: int(r.int()), Cap: int(r.int()), Paused: r.flag(),
		})
		return nil
	})
	return ps, err
}

// SavePolicy implements scheduler.KernelTx.
func (t *tx) SavePolicy(_ context.Context, p rules.Policy) error {
	return t.write("save policy", step{stmt: savePolicy}, uuidOf(p.Tenant.UUID), textOf(p.Class), int8Of(int64(p.Weight)), int8Of(int64(p.Cap)),
		boolOf(p.Paused))
}
