package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/postgres/wire"
)

var (
	readPolicies = wire.SQL("select tenant, class, weight, cap, paused from policy order by tenant, class")
	savePolicy   = wire.SQL("insert into policy (tenant, class, weight, cap, paused) values ($1::uuid, $2::text, $3::bigint, $4::bigint, $5::boolean)" +
		" on conflict (tenant, class) do update set weight = excluded.weight, cap = excluded.cap, paused = excluded.paused")
)

// Policies implements scheduler.KernelView.
func (v *view) Policies(context.Context) (ps []rules.Policy, err error) {
	err = v.query("read policies", readPolicies, func(r *wire.Row) error {
		ps = append(ps, rules.Policy{
			Tenant: lessor.TenantID{UUID: r.ID()}, Class: r.Text(), Weight: int(r.Int()), Cap: int(r.Int()), Paused: r.Flag(),
		})
		return nil
	})
	return ps, err
}

// SavePolicy implements scheduler.KernelTx.
func (t *tx) SavePolicy(_ context.Context, p rules.Policy) error {
	return t.write("save policy", wire.Step{Stmt: savePolicy}, wire.ID(p.Tenant.UUID), wire.Text(p.Class), wire.Int8(int64(p.Weight)), wire.Int8(int64(p.Cap)),
		wire.Flag(p.Paused))
}
