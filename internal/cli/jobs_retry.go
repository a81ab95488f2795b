package cli

import (
	"context"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

func (a *app) jobsRetryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "retry ID…",
		Short: "Try jobs again that failed, expired or were cancelled",
		Long:  "Retry queues a job that ended without success for one more attempt, and makes one that waits for its retry due now.",
		Args:  cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.run(func(cmd *cobra.Command, args []string) error {
			return a.eachJob(cmd, args, func(ctx context.Context, c *client.Client, id lessor.JobID) (lessor.Job, error) {
				return c.Retry(ctx, id)
			})
		}),
	}
}
