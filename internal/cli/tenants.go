package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/table"
)

func (a *app) tenantsCommand() *cobra.Command {
	cmd := withList(a.reaching(&cobra.Command{
		Use:   "tenants",
		Short: "List tenants and their shares; show or set one",
		Long: `Tenants lists the tenants: FAIR is a tenant's weight relative to the tenants that have queued or leased
jobs, HAS its share of the leased units.`,
		Example: `  lessor tenants
  lessor tenants set ID --weight 3 --max-concurrency 50
  lessor tenants classes ID`,
	}), "List tenants (the default)", "  lessor tenants list", a.bindTenants)
	classes := &cobra.Command{
		Use: "classes ID", Short: "List a tenant's fairness classes",
		Example: "  lessor tenants classes ID",
	}
	classList.bind(a, classes)
	cmd.AddCommand(classes, a.tenantsSetCommand(), &cobra.Command{
		Use: "show ID", Short: "Show a tenant", Example: "  lessor tenants show ID",
		RunE: show(a, idArg[lessor.TenantID]("tenant"), (*client.Client).Tenant, writeTenant),
	})
	return cmd
}

// bindTenants makes cmd list the tenants. The list reads all of them first, because a share depends on all.
func (a *app) bindTenants(cmd *cobra.Command) {
	weights, units := 0, 0
	list[lessor.Tenant]{
		name: "tenants", cursor: camelCursor, whole: true,
		header: []string{"TENANT", "NAME?", "WEIGHT", "FAIR", "HAS", "QUEUED", "LEASES", "UNITS?", "CAP?", "NOTE"},
		row: func(t lessor.Tenant, _ time.Time) []string {
			fair := ""
			if wantsTurns(t) {
				fair = percent(t.Weight, weights)
			}
			return []string{
				t.TenantID.String(), text(t.Name), fmt.Sprint(t.Weight), fair, percent(t.Units, units),
				fmt.Sprint(t.Queued),
				fmt.Sprint(t.Leases), fmt.Sprint(t.Units), capText(t.MaxConcurrency), pausedText(t.Paused),
			}
		},
		pages: onePage(func(c *client.Client, ctx context.Context) ([]lessor.Tenant, error) {
			all, err := allTenants(ctx, c)
			for _, t := range all {
				if wantsTurns(t) {
					weights += t.Weight
				}
				units += t.Units
			}
			return all, err
		}),
	}.bind(a, cmd)
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

// wantsTurns reports whether a tenant shares the turns now.
func wantsTurns(t lessor.Tenant) bool { return !t.Paused && t.Queued+t.Leases > 0 }

// percent shows part of whole as a share, and nothing if the whole is 0.
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

func writeTenant(w *table.Table, t lessor.Tenant, _ time.Time) {
	w.Row("tenant", t.TenantID.String())
	w.Row("name", text(t.Name))
	w.Row("weight", fmt.Sprint(t.Weight))
	most := capText(t.MaxConcurrency)
	if t.MaxConcurrencyDefault {
		most += " (the default)"
	}
	w.Row("cap", most)
	w.Row("paused", yesNo(t.Paused))
	w.Row("leases", fmt.Sprint(t.Leases))
	w.Row("units", fmt.Sprint(t.Units))
	w.Row("queued", fmt.Sprint(t.Queued))
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

var classList = list[lessor.Class]{
	name: "classes", cursor: camelCursor,
	header: []string{"CLASS~", "NAME?", "WEIGHT", "LEASES", "CAP", "QUEUED", "NOTE"},
	row:    classRow,
	pages: func(args []string) (pager[lessor.Class], error) {
		id, err := parseID[lessor.TenantID]("tenant", args[0])
		return func(c *client.Client, ctx context.Context, limit int, cursor string) ([]lessor.Class, string, error) {
			return c.Classes(ctx, id, limit, cursor)
		}, err
	},
}

func classRow(k lessor.Class, _ time.Time) []string {
	return []string{
		k.Class, text(k.Name), fmt.Sprint(k.Weight), fmt.Sprint(k.Leases), capText(k.MaxConcurrency),
		fmt.Sprint(k.Queued),
		pausedText(k.Paused),
	}
}

type tenantsSetFlags struct {
	weight, most  int64
	pause, resume bool
	class, name   string
}

func (a *app) tenantsSetCommand() *cobra.Command {
	var f tenantsSetFlags
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Set the name, weight, cap or pause of a tenant or a class",
		Long: `Set changes the given settings and keeps the others. A paused tenant's jobs wait; held leases continue to
their end, also above a lowered cap.`,
		Example: `  lessor tenants set ID --weight 3
  lessor tenants set ID --name "Acme, Inc."
  lessor tenants set ID --class batch --max-concurrency 5 --pause`,
	}
	cmd.Flags().StringVar(&f.name, "name", "", "its name for people; an empty one removes it")
	wholeVar(cmd, &f.weight, "weight", 1, "its share of turns relative to other tenants")
	wholeVar(cmd, &f.most, "max-concurrency", 0, "leases at the same time; 0 returns to the default")
	cmd.Flags().BoolVar(&f.pause, "pause", false, "grant none of its jobs")
	cmd.Flags().BoolVar(&f.resume, "resume", false, "end a pause")
	cmd.Flags().StringVar(&f.class, "class", "", "change this fairness class of the tenant, not the tenant")
	cmd.MarkFlagsMutuallyExclusive("pause", "resume")
	cmd.MarkFlagsOneRequired("name", "weight", "max-concurrency", "pause", "resume")
	id := idArg[lessor.TenantID]("tenant")
	setTenant := show(a, id, func(c *client.Client, ctx context.Context, id lessor.TenantID) (lessor.Tenant, error) {
		return c.SetTenant(ctx, id, f.ask(cmd))
	}, writeTenant)
	setClass := show(a, id, func(c *client.Client, ctx context.Context, id lessor.TenantID) (lessor.Class, error) {
		return c.SetClass(ctx, id, f.class, f.ask(cmd))
	}, func(t *table.Table, k lessor.Class, now time.Time) {
		t.Head(classList.header...)
		t.Row(classRow(k, now)...)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.class != "" {
			return setClass(cmd, args)
		}
		return setTenant(cmd, args)
	}
	return cmd
}

// ask returns the changes that the flags name.
func (f tenantsSetFlags) ask(cmd *cobra.Command) (ask lessor.TenantAsk) {
	ask.Name = lessor.Change[string]{To: given(cmd, "name", f.name)}
	if f.name == "" {
		ask.Name = lessor.Change[string]{Reset: cmd.Flags().Changed("name")}
	}
	ask.Weight.To = given(cmd, "weight", f.weight)
	if ask.MaxConcurrency.To = given(cmd, "max-concurrency", f.most); f.most == 0 {
		ask.MaxConcurrency = lessor.Change[int64]{Reset: cmd.Flags().Changed("max-concurrency")}
	}
	if f.pause || f.resume {
		ask.Paused.To = &f.pause
	}
	return ask
}
