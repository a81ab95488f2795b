package sqlite

import (
	"context"

	"lessor/internal/rules"
)

const workspaceLeases = "select " + leaseColumns + " from " + leaseTables + " where workspace_id = ?"

// WorkspaceLeases implements scheduler.View.
func (v *view) WorkspaceLeases(ctx context.Context, workspace string) (held []*rules.Held, err error) {
	err = query(v.conn, workspaceLeases,
		func(a *args) { a.text(workspace) },
		func(r *row) error {
			held = append(held, &readLease(r).Held)
			return nil
		})
	return held, readFault(ctx, "read leases of a workspace", err)
}
