package cli

import (
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) locksCommand() *cobra.Command {
	var tenant string
	var f listFlags
	cmd := a.reaching(&cobra.Command{
		Use: "locks", Short: "List held locks: who holds them, and until when", Example: "  lessor locks", Args: cobra.NoArgs,
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "only locks of this tenant")
	f.add(cmd, "locks")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error {
		id, err := tenantFlag(tenant)
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		now := time.Now()
		return list[lessor.Lock]{
			name: "locks", cursor: kernelCursor,
			header: []string{"LOCK", "TENANT", "HELD BY", "UNTIL", "RUN"},
			row: func(l lessor.Lock) []string {
				return []string{l.LockKey, tenantName(l.TenantID), l.LockedBy, until(l.LockedUntil, now), l.RunID.String()}
			},
			page: func(limit int, cursor string) ([]lessor.Lock, string, error) {
				return c.Locks(cmd.Context(), id, limit, cursor)
			},
		}.show(a, f)
	})
	return cmd
}
