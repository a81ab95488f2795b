package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) jobsWhyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "why ID", Short: "Tell why a job does not run now", Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.run(func(cmd *cobra.Command, args []string) error {
			ids, err := jobIDs(args)
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			why, err := c.Why(cmd.Context(), ids[0])
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(why)
			}
			if why.Place != nil {
				a.say("place in line: %d", *why.Place)
			}
			t := newTable(a.Out)
			for i, r := range why.Reasons {
				t.row(fmt.Sprintf("%d.", i+1), r.Code, r.Detail)
			}
			if len(why.Reasons) == 0 {
				a.say("nothing keeps it from running")
			}
			return t.flush()
		}),
	}
}
