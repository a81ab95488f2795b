package postgres

import (
	"context"

	"lessor/internal/rules"
)

var workspaceLeases = sql("select " + leaseColumns + " from lease where workspace_id = $1::text")

// WorkspaceLeases implements scheduler.View.
func (v *view) WorkspaceLeases(_ context.Context, workspace string) (held []*rules.Held, err error) {
	err = v.query("read leases of a workspace", workspaceLeases, func(r *row) error {
		held = append(held, readLease(r))
		return nil
	}, textOf(workspace))
	return held, err
}
