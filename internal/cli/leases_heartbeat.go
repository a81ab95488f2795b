package cli

import (
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) leasesHeartbeatCommand() *cobra.Command {
	var worker, message string
	var progress float64
	cmd := &cobra.Command{
		Use: "heartbeat ID", Short: "Keep a lease alive, as its worker does", Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	workerFlag(cmd, &worker)
	cmd.Flags().Float64Var(&progress, "progress", 0, "how far the work is, 0 to 1")
	cmd.Flags().StringVar(&message, "message", "", "what the work is at")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		id, err := leaseID(args[0])
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		answer, err := c.Heartbeat(cmd.Context(), id, lessor.Heartbeat{
			WorkerID: &worker, Progress: given(cmd, "progress", progress), Message: given(cmd, "message", message),
		})
		switch {
		case err != nil:
			return err
		case a.json:
			return a.printJSON(answer)
		}
		a.say("expires %s, beat again %s", until(answer.ExpiresAt, time.Now()),
			"in "+span(time.Duration(answer.HeartbeatAfterMS)*time.Millisecond))
		if answer.CancelRequested {
			a.say("the job's cancellation is requested: stop, and complete it with --status cancelled")
		}
		return nil
	})
	return cmd
}
