package postgres

import (
	"context"

	"lessor/internal/rules"
	"lessor/internal/store/postgres/wire"
)

var workspaceLeases = wire.SQL("select " + leaseColumns + " from lease where workspace_id = $1::text")

// WorkspaceLeases implements scheduler.View.
func (v *view) WorkspaceLeases(_ context.Context, workspace string) (held []*rules.Held, err error) {
	err = v.query("read leases of a workspace", workspaceLeases, func(r *wire.Row) error {
		held = append(held, readLease(r))
		return nil
	}, wire.Text(workspace))
	return held, err
}
