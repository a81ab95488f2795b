package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

func (a *app) capacityCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "capacity",
		Short: "Show or set what may be leased at once",
		Example: `  lessor capacity
  lessor capacity set --total 50 --for 2h
  lessor capacity set --busy 8
  lessor capacity reset`,
		Args: cobra.NoArgs,
		RunE: a.run(a.showCapacity),
	})
	show := &cobra.Command{Use: "show", Short: "Show the figures (the default)", Args: cobra.NoArgs, RunE: a.run(a.showCapacity)}
	reset := &cobra.Command{
		Use: "reset", Short: "Return to the server's configuration", Args: cobra.NoArgs,
		RunE: a.run(func(cmd *cobra.Command, _ []string) error {
			return a.changeCapacity(cmd, client.CapacityChange{ResetTotalUnits: true, ResetBusy: true})
		}),
	}
	cmd.AddCommand(show, a.capacitySetCommand(), reset)
	return cmd
}

func (a *app) capacitySetCommand() *cobra.Command {
	var total int64
	var busy string
	var lasts duration
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set the total of units or the busy rating",
		Long:  "Set changes what may be leased and keeps it in the store until it is reset or its time is over. It needs a token.",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().Int64Var(&total, "total", 0, "units in all")
	cmd.Flags().StringVar(&busy, "busy", "", "busy rating 0 to 10, or host to measure it")
	cmd.Flags().Var(&lasts, "for", "how long it lasts, in whole seconds (default: until it is reset)")
	cmd.MarkFlagsOneRequired("total", "busy")
	completes(cmd, "busy", oneOf("host", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"))
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error {
		ch := client.CapacityChange{TotalUnits: given(cmd, "total", total), ResetBusy: busy == "host", ExpiresIn: lasts.Duration}
		if _, err := seconds(cmd, "for", lasts); err != nil {
			return err
		}
		if busy != "" && busy != "host" {
			rating, err := strconv.ParseInt(busy, 10, 64)
			if err != nil {
				return usagef("--busy: %q is neither host nor a rating 0 to 10", busy)
			}
			ch.Busy = &rating
		}
		return a.changeCapacity(cmd, ch)
	})
	return cmd
}

func (a *app) showCapacity(cmd *cobra.Command, _ []string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	capacity, err := c.Capacity(cmd.Context())
	if err != nil {
		return err
	}
	return a.printCapacity(capacity)
}

func (a *app) changeCapacity(cmd *cobra.Command, ch client.CapacityChange) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	capacity, err := c.SetCapacity(cmd.Context(), ch)
	if err != nil {
		return err
	}
	return a.printCapacity(capacity)
}

func (a *app) printCapacity(c lessor.Capacity) error {
	if a.json {
		return a.printJSON(c)
	}
	t := newTable(a.Out)
	t.row("total", fmt.Sprint(c.TotalUnits))
	t.row("reserve", fmt.Sprint(c.ReserveUnits))
	t.row("busy", fmt.Sprintf("%d (%s)", c.Busy, c.BusySource))
	t.row("usable", fmt.Sprint(c.UsableUnits))
	t.row("leased", fmt.Sprint(c.LeasedUnits))
	t.row("available", fmt.Sprint(c.AvailableUnits))
	return t.flush()
}
