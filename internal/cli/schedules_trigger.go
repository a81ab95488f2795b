package cli

import (
	"github.com/spf13/cobra"

	"lessor/client"
)

func (a *app) schedulesTriggerCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "trigger ID…",
		Short:   "Run definitions now, also those that are paused",
		Long:    "Trigger makes a job of each definition now, whatever its schedule says, and prints the ids of the runs.",
		Example: "  lessor schedules trigger books.nightly",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.run(func(cmd *cobra.Command, args []string) error {
			return a.eachDefinition(args, func(c *client.Client, id string) (any, string, error) {
				run, err := c.Trigger(cmd.Context(), id)
				return map[string]any{"jobId": id, "runId": run}, "run " + run.String(), err
			})
		}),
	}
}
