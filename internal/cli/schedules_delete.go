package cli

import (
	"github.com/spf13/cobra"

	"lessor/client"
)

func (a *app) schedulesDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "delete ID…",
		Short:   "Delete definitions; their runs stay",
		Long:    "Delete removes definitions and cancels their jobs that wait. Jobs that run go on to their end, and all runs stay in the audit.",
		Example: "  lessor schedules delete books.nightly",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.run(func(cmd *cobra.Command, args []string) error {
			return a.eachDefinition(args, func(c *client.Client, id string) (any, string, error) {
				return map[string]string{"jobId": id}, "deleted", c.DeleteDefinition(cmd.Context(), id)
			})
		}),
	}
}
