package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) tenantsClassesCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use: "classes ID", Short: "List a tenant's fairness classes", Example: "  lessor tenants classes 11111111-1111-4111-8111-111111111111",
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.add(cmd, "classes")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		u, err := parseID("tenant", args[0])
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		return a.classTable(func(ctx context.Context, limit int, cursor string) ([]lessor.Class, string, error) {
			return c.Classes(ctx, lessor.TenantID{UUID: u}, limit, cursor)
		}, cmd, f)
	})
	return cmd
}

func (a *app) classTable(page func(context.Context, int, string) ([]lessor.Class, string, error), cmd *cobra.Command, f listFlags) error {
	return list[lessor.Class]{
		name: "classes", cursor: kernelCursor,
		header: []string{"CLASS", "WEIGHT", "LEASES", "CAP", "QUEUED", "NOTE"},
		row: func(k lessor.Class) []string {
			return []string{k.Class, fmt.Sprint(k.Weight), fmt.Sprint(k.Leases), capText(k.MaxConcurrency), fmt.Sprint(k.Queued), pausedText(k.Paused)}
		},
		page: func(limit int, cursor string) ([]lessor.Class, string, error) {
			return page(cmd.Context(), limit, cursor)
		},
	}.show(a, f)
}
