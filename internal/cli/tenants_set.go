package cli

import (
	"context"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

type tenantsSetFlags struct {
	weight, most  int64
	pause, resume bool
	class         string
}

func (a *app) tenantsSetCommand() *cobra.Command {
	var f tenantsSetFlags
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Set a tenant's weight, cap or pause, or those of one of its classes",
		Long: `Set changes what is given and keeps the rest as it is. A paused tenant's jobs wait; leases that are held, also over a
lowered cap, go on to their end.`,
		Example: `  lessor tenants set 11111111-1111-4111-8111-111111111111 --weight 3
  lessor tenants set 11111111-1111-4111-8111-111111111111 --class batch --max-concurrency 5 --pause`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().Int64Var(&f.weight, "weight", 1, "its part of the turns against others")
	cmd.Flags().Int64Var(&f.most, "max-concurrency", 0, "leases at one time; 0 returns to the default")
	cmd.Flags().BoolVar(&f.pause, "pause", false, "let its jobs wait")
	cmd.Flags().BoolVar(&f.resume, "resume", false, "let its jobs go on")
	cmd.Flags().StringVar(&f.class, "class", "", "this fairness class of the tenant instead of the tenant")
	cmd.MarkFlagsMutuallyExclusive("pause", "resume")
	cmd.MarkFlagsOneRequired("weight", "max-concurrency", "pause", "resume")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		u, err := parseID("tenant", args[0])
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		id := lessor.TenantID{UUID: u}
		if f.class != "" {
			return a.setClass(cmd, c, id, f)
		}
		return a.setTenant(cmd, c, id, f)
	})
	return cmd
}

// ask is what is to be set: what flags say, and else what is there.
func (f tenantsSetFlags) ask(cmd *cobra.Command, weight int, most *int, paused bool) lessor.TenantAsk {
	ask := lessor.TenantAsk{Weight: new(int64(weight)), Paused: new((paused || f.pause) && !f.resume)}
	if most != nil {
		ask.MaxConcurrency = new(int64(*most))
	}
	if cmd.Flags().Changed("weight") {
		ask.Weight = &f.weight
	}
	if cmd.Flags().Changed("max-concurrency") {
		if ask.MaxConcurrency = &f.most; f.most == 0 {
			ask.MaxConcurrency = nil
		}
	}
	return ask
}

func (a *app) setTenant(cmd *cobra.Command, c *client.Client, id lessor.TenantID, f tenantsSetFlags) error {
	was, err := c.Tenant(cmd.Context(), id)
	if err != nil {
		return err
	}
	is, err := c.SetTenant(cmd.Context(), id, f.ask(cmd, was.Weight, was.MaxConcurrency, was.Paused))
	if err != nil {
		return err
	}
	return a.printTenant(is)
}

func (a *app) setClass(cmd *cobra.Command, c *client.Client, id lessor.TenantID, f tenantsSetFlags) error {
	was, err := c.Class(cmd.Context(), id, f.class)
	if err != nil {
		return err
	}
	is, err := c.SetClass(cmd.Context(), id, f.class, f.ask(cmd, was.Weight, was.MaxConcurrency, was.Paused))
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(is)
	}
	return a.classTable(func(context.Context, int, string) ([]lessor.Class, string, error) { return []lessor.Class{is}, "", nil }, cmd, listFlags{limit: 1})
}
