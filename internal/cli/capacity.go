package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/table"
)

func (a *app) capacityCommand() *cobra.Command {
	read := show(a, noArgs, plain((*client.Client).Capacity), writeCapacity)
	cmd := a.reaching(&cobra.Command{
		Use:   "capacity",
		Short: "Show or set how many units may be leased at once",
		Example: `  lessor capacity
  lessor capacity set --total 50 --for 2h
  lessor capacity set --busy 8
  lessor capacity reset`,
		RunE: read,
	})
	cmd.AddCommand(a.capacitySetCommand(),
		&cobra.Command{Use: "show", Short: "Show the figures (the default)", RunE: read},
		&cobra.Command{
			Use: "reset", Short: "Return to the server's configuration",
			RunE: show(a, func(*cobra.Command, []string) (lessor.CapacityAsk, error) {
				reset := lessor.Change[int64]{Reset: true}
				return lessor.CapacityAsk{TotalUnits: reset, Busy: reset}, nil
			}, (*client.Client).SetCapacity, writeCapacity),
		})
	return cmd
}

func (a *app) capacitySetCommand() *cobra.Command {
	var total int64
	var busy string
	var lasts duration
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set the total of units or the busy rating",
		Long: `Set changes the capacity. The store keeps the change until it is reset or its time is over. It needs a
token.`,
	}
	wholeVar(cmd, &total, "total", 0, "units in all")
	oneOf(cmd, &busy, "busy", "busy rating; host measures it",
		"host", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10")
	cmd.Flags().Var(&lasts, "for", "duration of the change, in whole seconds (default: until it is reset)")
	cmd.MarkFlagsOneRequired("total", "busy")
	cmd.RunE = show(a, func(cmd *cobra.Command, _ []string) (ask lessor.CapacityAsk, err error) {
		ask.TotalUnits.To, ask.Busy.Reset = given(cmd, "total", total), busy == "host"
		if ask.ExpiresInS, err = seconds(cmd, "for", lasts); err != nil {
			return ask, err
		}
		if busy != "" && busy != "host" {
			rating, err := strconv.ParseInt(busy, 10, 64)
			if err != nil {
				return ask, usagef("--busy: %q is neither host nor a rating 0 to 10", busy)
			}
			ask.Busy.To = &rating
		}
		return ask, nil
	}, (*client.Client).SetCapacity, writeCapacity)
	return cmd
}

func writeCapacity(t *table.Table, c lessor.Capacity, now time.Time) {
	ends := func(at lessor.Instant) string {
		if at.IsZero() {
			return ""
		}
		return ", ends " + until(at, now)
	}
	t.Row("total", fmt.Sprint(c.TotalUnits)+ends(c.TotalUnitsExpiresAt))
	t.Row("reserve", fmt.Sprint(c.ReserveUnits))
	t.Row("busy", fmt.Sprintf("%d (%s)%s", c.Busy, c.BusySource, ends(c.BusyExpiresAt)))
	t.Row("usable", fmt.Sprint(c.UsableUnits))
	t.Row("leased", fmt.Sprint(c.LeasedUnits))
	t.Row("available", fmt.Sprint(c.AvailableUnits))
}

func (a *app) drainCommand() *cobra.Command {
	return a.reaching(&cobra.Command{
		Use:   "drain [on|off|status]",
		Short: "Stop new grants, or resume them",
		Long: `While a server drains, it grants no new lease; held leases continue to their end. Without an argument,
drain shows the state. Changing it needs a token.`,
		Example:   "  lessor drain on\n  lessor drain status",
		ValidArgs: []string{"on", "off", "status"},
		RunE: show(a, optionalArg, func(c *client.Client, ctx context.Context, to string) (lessor.Status, error) {
			if to == "" || to == "status" {
				return c.Status(ctx)
			}
			return c.SetDraining(ctx, to == "on")
		}, writeStatus),
	})
}

func writeStatus(t *table.Table, s lessor.Status, _ time.Time) {
	if s.Draining {
		t.Row("draining", "on: no new leases")
	} else {
		t.Row("draining", "off")
	}
	t.Row("active leases", fmt.Sprint(s.ActiveLeases))
	t.Row("waiting for an answer", fmt.Sprint(s.Waiting))
	q := s.QueueDepth
	t.Row("queued", fmt.Sprintf("%d high, %d normal, %d low, %d background", q.High, q.Normal, q.Low, q.Background))
}

// logLevel is the least level that a server logs, in the shape of the API.
type logLevel struct {
	Level string `json:"level"`
}

var logLevels = []string{"debug", "info", "warn", "error"}

func (a *app) logLevelCommand() *cobra.Command {
	return a.reaching(&cobra.Command{
		Use:   "log-level [debug|info|warn|error]",
		Short: "Show or change the least level that a server logs",
		Long: `Log-level shows the least level that a server logs, or changes it until the server stops. If there are
several nodes, --server selects one. It needs an admin token.`,
		Example:   "  lessor log-level debug",
		ValidArgs: logLevels,
		RunE: show(a, optionalArg, func(c *client.Client, ctx context.Context, to string) (l logLevel, err error) {
			if to == "" {
				l.Level, err = c.LogLevel(ctx)
			} else {
				l.Level, err = c.SetLogLevel(ctx, to)
			}
			return l, err
		}, func(t *table.Table, l logLevel, _ time.Time) { t.Row(l.Level) }),
	})
}
