package cli

import (
	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) leasesReleaseCommand() *cobra.Command {
	var worker string
	var delay duration
	cmd := &cobra.Command{
		Use:   "release ID",
		Short: "Give a lease back, as its worker does",
		Long:  "Release puts the job back in its place. The attempt does not count.",
		Args:  cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	workerFlag(cmd, &worker)
	cmd.Flags().Var(&delay, "delay", "how long the job waits before it may be granted again")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		id, err := leaseID(args[0])
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		if err := c.Release(cmd.Context(), id, lessor.Release{WorkerID: &worker, DelayMS: milliseconds(cmd, "delay", delay)}); err != nil {
			return err
		}
		return a.done("released")
	})
	return cmd
}
