package cli

import (
	"context"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

func (a *app) jobsRetryCommand() *cobra.Command {
	return a.jobsVerb(&cobra.Command{
		Use:   "retry [ID…]",
		Short: "Try jobs again that failed, expired or were cancelled, by id or by filter",
		Long: `Retry queues a job that ended without success for one more attempt, and makes one that waits for its retry due now.

Jobs are named by their ids, or chosen by --state, --type, --tenant and --tag: then all that match are counted first, and nothing is
done until you say yes.`,
		Example: `  lessor jobs retry 0196a1b2-…
  lessor jobs retry --state failed --tag nightly`,
	}, &bulk{verb: "retry", do: func(ctx context.Context, c *client.Client, id lessor.JobID) (lessor.Job, error) {
		return c.Retry(ctx, id)
	}})
}
