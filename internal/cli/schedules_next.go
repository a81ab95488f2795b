package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) schedulesNextCommand() *cobra.Command {
	var count int
	cmd := &cobra.Command{
		Use: "next ID", Short: "Show the next ticks of a definition", Example: "  lessor schedules next books.nightly -n 10",
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().IntVarP(&count, "count", "n", 5, "how many, 1 to 100")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		if count < 1 || count > 100 {
			return usagef("--count %d: allowed is 1 to 100", count)
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		ticks, err := c.NextTicks(cmd.Context(), args[0], count)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.printJSON(map[string][]lessor.Instant{"next": ticks})
		}
		now := time.Now()
		for _, t := range ticks {
			a.say("%s", fmt.Sprintf("%s  %s", t, until(t, now)))
		}
		return nil
	})
	return cmd
}
