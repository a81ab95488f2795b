package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

func (a *app) tenantsCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "tenants",
		Short: "List tenants and their shares; show or set one",
		Long: `Tenants lists what each tenant has against what is fair: FAIR is its weight among the tenants that have jobs queued or
leased, HAS is its part of the leased units.`,
		Example: `  lessor tenants
  lessor tenants set 11111111-1111-4111-8111-111111111111 --weight 3 --max-concurrency 50
  lessor tenants classes 11111111-1111-4111-8111-111111111111`,
		Args: cobra.NoArgs,
		RunE: a.run(a.listTenants),
	})
	list := &cobra.Command{Use: "list", Short: "List tenants (the default)", Example: "  lessor tenants list", Args: cobra.NoArgs, RunE: a.run(a.listTenants)}
	show := &cobra.Command{
		Use: "show ID", Short: "Show a tenant", Example: "  lessor tenants show 11111111-1111-4111-8111-111111111111",
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions, RunE: a.run(a.showTenant),
	}
	cmd.AddCommand(list, show, a.tenantsSetCommand(), a.tenantsClassesCommand())
	return cmd
}

// listTenants reads all tenants before it shows the first: a share is a part of the whole.
func (a *app) listTenants(cmd *cobra.Command, _ []string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	all, err := allTenants(cmd.Context(), c)
	if err != nil {
		return err
	}
	weights, units := 0, 0
	for _, t := range all {
		if wantsTurns(t) {
			weights += t.Weight
		}
		units += t.Units
	}
	return list[lessor.Tenant]{
		name: "tenants", cursor: kernelCursor,
		header: []string{"TENANT", "WEIGHT", "FAIR", "HAS", "UNITS", "LEASES", "CAP", "QUEUED", "NOTE"},
		row: func(t lessor.Tenant) []string {
			fair := ""
			if wantsTurns(t) {
				fair = percent(t.Weight, weights)
			}
			return []string{
				t.TenantID.String(), fmt.Sprint(t.Weight), fair, percent(t.Units, units), fmt.Sprint(t.Units), fmt.Sprint(t.Leases),
				capText(t.MaxConcurrency), fmt.Sprint(t.Queued), pausedText(t.Paused),
			}
		},
		page: func(int, string) ([]lessor.Tenant, string, error) { return all, "", nil },
	}.show(a, listFlags{all: true, limit: maxPage})
}

func allTenants(ctx context.Context, c *client.Client) (all []lessor.Tenant, err error) {
	for cursor := ""; ; {
		page, next, err := c.Tenants(ctx, maxPage, cursor)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); next == "" || next == cursor {
			return all, nil
		}
		cursor = next
	}
}

// wantsTurns reports whether a tenant takes part in the sharing now.
func wantsTurns(t lessor.Tenant) bool { return !t.Paused && t.Queued+t.Leases > 0 }

// percent is part of whole; nothing of nothing is not shown.
func percent(part, whole int) string {
	if whole == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}

func capText(most *int) string {
	if most == nil {
		return "none"
	}
	return fmt.Sprint(*most)
}

func pausedText(paused bool) string {
	if paused {
		return "paused"
	}
	return ""
}

func (a *app) showTenant(cmd *cobra.Command, args []string) error {
	u, err := parseID("tenant", args[0])
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	t, err := c.Tenant(cmd.Context(), lessor.TenantID{UUID: u})
	if err != nil {
		return err
	}
	return a.printTenant(t)
}

func (a *app) printTenant(t lessor.Tenant) error {
	if a.json {
		return a.printJSON(t)
	}
	w := newTable(a.Out)
	w.row("tenant", t.TenantID.String())
	w.row("weight", fmt.Sprint(t.Weight))
	w.row("cap", capText(t.MaxConcurrency))
	w.row("paused", yesNo(t.Paused))
	w.row("leases", fmt.Sprint(t.Leases))
	w.row("units", fmt.Sprint(t.Units))
	w.row("queued", fmt.Sprint(t.Queued))
	return w.flush()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
