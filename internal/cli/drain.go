package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) drainCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "drain [on|off|status]",
		Short: "Stop new grants, or let them go on",
		Long: `While draining no new lease is granted; leases that are held go on to their end. Without an argument the state is
shown. Changing it needs a token.`,
		Example:   "  lessor drain on\n  lessor drain status",
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"on", "off", "status"},
	})
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		var status lessor.Status
		if len(args) == 0 || args[0] == "status" {
			status, err = c.Status(cmd.Context())
		} else {
			status, err = c.SetDraining(cmd.Context(), args[0] == "on")
		}
		switch {
		case err != nil:
			return err
		case a.json:
			return a.printJSON(status)
		}
		return a.printStatus(status)
	})
	return cmd
}

func (a *app) printStatus(s lessor.Status) error {
	t := newTable(a.Out)
	if s.Draining {
		t.row("draining", "on: no new leases")
	} else {
		t.row("draining", "off")
	}
	t.row("active leases", fmt.Sprint(s.ActiveLeases))
	q := s.QueueDepth
	t.row("queued", fmt.Sprintf("%d high, %d normal, %d low, %d background", q.High, q.Normal, q.Low, q.Background))
	return t.flush()
}
